import type { Core } from '@strapi/strapi';
import { getOptions } from '../../config';
import { type Kind, KINDS } from '../rules/types';
import { type Form, resolveForm } from '../forms/resolve-form';
import { inspectSource, planWatch, type WatchedSource, type WatchPlan } from './watched-types';
import { type AttributeShape, MappingError, resolveSource, type Source } from './mapping';

export type Sources = ReadonlyMap<Kind, Source>;

const resolved = new WeakMap<Core.Strapi, Sources>();

const attributesOf =
  (strapi: Core.Strapi) =>
  (uid: string): Record<string, AttributeShape> | undefined =>
    (
      strapi.contentTypes as unknown as Record<
        string,
        { attributes: Record<string, unknown> } | undefined
      >
    )[uid]?.attributes as Record<string, AttributeShape> | undefined;

/** The site's own content types, which is what a mapping may name. */
export const siteTypes = (strapi: Core.Strapi): string[] =>
  Object.keys(strapi.contentTypes).filter((uid) => uid.startsWith('api::'));

/** The tags of a contact are events only where they are the tags that this site knows as tags. */
const checkTags = (contact: Source, tag: Source, explicit: boolean, target?: string): Source => {
  if (!contact.tags || target === tag.uid) return contact;
  if (!explicit) return { ...contact, tags: null };
  throw new MappingError(
    `switchboard.sources.contact.fields.tags: "${contact.tags}" relates to ${target}, but tags are ` +
      `${tag.uid}. Map that type too: sources.tag = { contentType: '${target}' }.`
  );
};

/**
 * Where this site keeps its CRM objects: the plugin's own types, or the ones that its options map.
 * @throws MappingError, which stops the boot and lists what is possible.
 */
export const getSources = (strapi: Core.Strapi): Sources => {
  const known = resolved.get(strapi);
  if (known) return known;
  const options = getOptions(strapi).sources as Partial<
    Record<Kind, Parameters<typeof resolveSource>[1]>
  >;
  const describe = attributesOf(strapi);
  const sources = new Map<Kind, Source>();
  for (const kind of KINDS) {
    const source = resolveSource(kind, options[kind], describe, () => siteTypes(strapi));
    sources.set(kind, source);
  }
  const contact = sources.get('contact') as Source;
  const target = contact.tags ? describe(contact.uid)?.[contact.tags]?.target : undefined;
  const explicit = options.contact?.fields?.tags !== undefined;
  sources.set('contact', checkTags(contact, sources.get('tag') as Source, explicit, target));
  resolved.set(strapi, sources);
  return sources;
};

/** The content types that the site's options name as forms whose sender is added to the CRM. */
export const getForms = (strapi: Core.Strapi): Form[] =>
  getOptions(strapi)
    .forms.map((option, index) =>
      resolveForm(index, option, attributesOf(strapi), () => siteTypes(strapi))
    )
    .filter((_form, index) => getOptions(strapi).forms[index]?.addSender);

export const getSource = (strapi: Core.Strapi, kind: Kind): Source => {
  const source = getSources(strapi).get(kind);
  if (!source) throw new Error(`switchboard: no source for ${kind}`);
  return source;
};

/** The same, with what its content type says of drafts, languages and components. */
export const getInspected = (strapi: Core.Strapi, kind: Kind): WatchedSource =>
  inspectSource(strapi, getSource(strapi, kind), getSource(strapi, 'tag'));

const plans = new WeakMap<Core.Strapi, WatchPlan>();

/** Which types this site's writes are watched of. */
export const getWatchPlan = (strapi: Core.Strapi): WatchPlan => {
  const plan = plans.get(strapi) ?? planWatch(strapi, getSources(strapi), getForms(strapi));
  plans.set(strapi, plan);
  return plan;
};

/** Every event that a write to a type may cause. */
export const eventsAbout = (strapi: Core.Strapi, uid: string): readonly string[] =>
  getWatchPlan(strapi).eventsByUid.get(uid) ?? [];
