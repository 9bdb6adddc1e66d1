const ARTICLE = 'api::article.article';
const FILE = 'plugin::upload.file';

const all = (type, ...names) => Object.fromEntries(names.map((name) => [name, { type }]));

const STAMPS = all('datetime', 'createdAt', 'updatedAt', 'publishedAt');

/** A type such as sites have, and files as the host has them. */
const MODELS = {
  [ARTICLE]: {
    ...all('string', 'title'),
    cover: { type: 'media' },
    seo: { type: 'component', component: 'shared.seo' },
    writer: { type: 'relation', relation: 'manyToOne', target: 'api::writer.writer' },
    ...STAMPS,
    ...all('string', 'locale'),
  },
  'shared.seo': all('string', 'description'),
  [FILE]: {
    ...all('string', 'name', 'alternativeText', 'caption'),
    ...all('decimal', 'width', 'height', 'size'),
    formats: { type: 'json' },
    ...all('string', 'hash', 'ext', 'mime', 'url', 'previewUrl', 'provider'),
    ...STAMPS,
  },
};

/**
 * The events of entries and files of a site that has articles: what the documentation shows.
 * @param entries what the server's `entries/catalogue`, `entries/types` and `entries/rules` export
 */
export const sampleEvents = ({ createDescriber, declareEntries, declareMedia, ENTRY_EVENTS }) => {
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
  return { ...declareEntries([article]), ...declareMedia(describe(FILE)) };
};
