import type { EventMap } from '../../hooks';
import { ENTRY_EVENTS } from '../rules';
import { type AttributeShape, createDescriber } from '../types/describe';
import { declareEntries, declareMedia } from '../catalogue';

const ARTICLE = 'api::article.article';

const texts = (...names: string[]): Record<string, AttributeShape> =>
  Object.fromEntries(names.map((name) => [name, { type: 'string' }]));

const numbers = (...names: string[]): Record<string, AttributeShape> =>
  Object.fromEntries(names.map((name) => [name, { type: 'decimal' }]));

const times = (...names: string[]): Record<string, AttributeShape> =>
  Object.fromEntries(names.map((name) => [name, { type: 'datetime' }]));

const STAMPS = times('createdAt', 'updatedAt', 'publishedAt');

/** A type such as sites have, and files as the host has them. */
const MODELS: Readonly<Record<string, Record<string, AttributeShape>>> = {
  [ARTICLE]: {
    ...texts('title'),
    cover: { type: 'media' },
    seo: { type: 'component', component: 'shared.seo' },
    writer: { type: 'relation', relation: 'manyToOne', target: 'api::writer.writer' },
    ...STAMPS,
    ...texts('locale'),
  },
  'shared.seo': texts('description'),
  'plugin::upload.file': {
    ...texts('name', 'alternativeText', 'caption'),
    ...numbers('width', 'height', 'size'),
    formats: { type: 'json' },
    ...texts('hash', 'ext', 'mime', 'url', 'previewUrl', 'provider'),
    ...STAMPS,
  },
};

/** The events of entries and files of a site that has articles: what the documentation shows. */
export const sampleEvents = (): EventMap => {
  const describe = createDescriber({
    model: (uid) => ({ attributes: MODELS[uid] ?? {} }),
    isPrivate: () => false,
  });
  const article = {
    uid: ARTICLE,
    shape: describe(ARTICLE),
    draftAndPublish: true,
    localized: true,
    drafts: true,
    events: ENTRY_EVENTS,
  };
  return { ...declareEntries([article]), ...declareMedia(describe('plugin::upload.file')) };
};
