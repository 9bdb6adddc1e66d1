import type { Core } from '@strapi/strapi';
import { contentTypes } from '@strapi/utils';
import { getOptions } from '../config';
import type { Where } from '../database/matching-documents';
import { type ContentTypeUid, ENTRY_EVENTS, FILE, MEDIA_EVENTS } from './rules';
import type { Shape } from './rules/shape';
import { createDescriber, type ModelShape } from './types/describe';
import { populateOf } from './types/populate';

/** A content type whose writes become events, as the site's options name it. */
export interface EntryType {
  readonly uid: ContentTypeUid;
  readonly shape: Shape;
  readonly populate: Where;
  readonly draftAndPublish: boolean;
  readonly localized: boolean;
  /** Drafts are told of too. */
  readonly drafts: boolean;
  /** Every event that a write to it may cause. */
  readonly events: readonly string[];
}

export type EntryTypes = ReadonlyMap<string, EntryType>;

/** What the options name and the site does not have; stops the boot. */
export class EntryTypeError extends Error {}

const OPTION = 'switchboard.sources.entries';

/** The host's own types, and those of the plugin, are no content; files have an option of their own. */
const isContent = (uid: string): boolean =>
  !/^(admin::|strapi::|plugin::switchboard\.)/.test(uid) && uid !== FILE;

const isSiteType = (uid: string): boolean => uid.startsWith('api::');

const modelOf = (strapi: Core.Strapi, uid: string): ModelShape | undefined =>
  ((strapi.contentTypes as Record<string, unknown>)[uid] ??
    (strapi.components as Record<string, unknown>)[uid]) as ModelShape | undefined;

/** Which types the options name, and whether with drafts; every one of them may be a type of the site's. */
const named = (strapi: Core.Strapi): Map<string, boolean> => {
  const { entries } = getOptions(strapi).sources;
  const known = Object.keys(strapi.contentTypes);
  if (entries === '*') return new Map(known.filter(isSiteType).map((uid) => [uid, false]));
  const types = new Map<string, boolean>();
  for (const entry of entries ?? []) {
    const { contentType, drafts } =
      typeof entry === 'string' ? { contentType: entry, drafts: false } : entry;
    types.set(contentType, drafts || types.get(contentType) === true);
  }
  return types;
};

/** Types that the options name and that cannot be told of, each with a line for the log. */
const unknownTypes = (strapi: Core.Strapi): Map<string, string> => {
  const known = Object.keys(strapi.contentTypes);
  const possible = known.filter(isSiteType).sort().join(', ') || 'none';
  const unknown = new Map<string, string>();
  for (const uid of named(strapi).keys()) {
    if (uid === FILE) {
      unknown.set(uid, `${OPTION}: files are told of with sources.media: true, not as "${uid}".`);
    } else if (!known.includes(uid) || !isContent(uid)) {
      const hint = uid === '*' ? " '*' stands alone, not in a list." : '';
      const what = known.includes(uid) ? `"${uid}" is no content of the site's` : null;
      unknown.set(
        uid,
        `${OPTION}: ${what ?? `there is no content type "${uid}"`}.${hint} Possible: ${possible}.`
      );
    }
  }
  return unknown;
};

/**
 * Looks whether the site has the types that `sources.entries` names. Under `strapi develop`, where a
 * type may be on its way, a line of the log says so instead, and the type is left out.
 * @throws EntryTypeError, which stops the boot and lists what is possible
 */
export const checkEntryTypes = (strapi: Core.Strapi): void => {
  const [first, ...others] = unknownTypes(strapi).values();
  if (first === undefined) return;
  if (strapi.config.get('autoReload') !== true) {
    throw new EntryTypeError([first, ...others].join('\n'));
  }
  for (const line of [first, ...others]) strapi.log.warn(`switchboard: ${line}`);
};

const eventsOf = (draftAndPublish: boolean, drafts: boolean): readonly string[] =>
  ENTRY_EVENTS.filter((event) => {
    if (!draftAndPublish) return !event.endsWith('published');
    return drafts || event !== 'entry.created';
  });

const resolve = (strapi: Core.Strapi): EntryTypes => {
  const describe = createDescriber({
    model: (uid) => modelOf(strapi, uid),
    isPrivate: (model, name) => contentTypes.isPrivateAttribute(model as never, name),
  });
  const common = (uid: string) => {
    const shape = describe(uid);
    return { uid: uid as ContentTypeUid, shape, populate: populateOf(shape) };
  };
  const unknown = unknownTypes(strapi);
  const types = new Map<string, EntryType>();
  for (const [uid, drafts] of named(strapi)) {
    if (unknown.has(uid)) continue;
    const { options, pluginOptions } = modelOf(strapi, uid) as ModelShape;
    const draftAndPublish = options?.draftAndPublish === true;
    const described = common(uid);
    types.set(described.uid, {
      ...described,
      draftAndPublish,
      localized: pluginOptions?.i18n?.localized === true && Boolean(strapi.plugins.i18n),
      drafts: draftAndPublish && drafts,
      events: eventsOf(draftAndPublish, drafts),
    });
  }
  if (getOptions(strapi).sources.media && strapi.plugins.upload) {
    const plain = { draftAndPublish: false, localized: false, drafts: false };
    types.set(FILE, { ...common(FILE), ...plain, events: MEDIA_EVENTS });
  }
  return types;
};

/** Whether the site's options ask for any of it: without, nothing is listened to. */
export const namesEntryTypes = (strapi: Core.Strapi): boolean => {
  const { entries, media } = getOptions(strapi).sources;
  return media === true || entries === '*' || (entries?.length ?? 0) > 0;
};

const resolved = new WeakMap<Core.Strapi, EntryTypes>();

/** The types that the site's options name. To be called once every plugin has registered. */
export const getEntryTypes = (strapi: Core.Strapi): EntryTypes => {
  const types = resolved.get(strapi) ?? resolve(strapi);
  resolved.set(strapi, types);
  return types;
};
