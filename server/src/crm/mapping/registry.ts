import { type Kind, KINDS } from '../rules/types';
import { type Form, resolveForm } from './forms';
import { inspectSource, planWatch, type WatchedSource, type WatchPlan } from './watched-types';
import { type AttributeShape, MappingError, resolveSource, type Source } from './mapping';
import type { App } from '../../app';

export type Sources = ReadonlyMap<Kind, Source>;

const attributesOf =
  (app: App) =>
  (uid: string): Record<string, AttributeShape> | undefined =>
    (
      app.strapi.contentTypes as unknown as Record<
        string,
        { attributes: Record<string, unknown> } | undefined
      >
    )[uid]?.attributes as Record<string, AttributeShape> | undefined;

/** The site's own content types, which is what a mapping may name. */
export const siteTypes = (app: App): string[] =>
  Object.keys(app.strapi.contentTypes).filter((uid) => uid.startsWith('api::'));

/** The tags of a contact are events only where they are the tags that this site knows as tags. */
const checkTags = (contact: Source, tag: Source, explicit: boolean, target?: string): Source => {
  if (!contact.tags || target === tag.uid) return contact;
  if (!explicit) return { ...contact, tags: null };
  throw new MappingError(
    `switchboard.sources.contact.fields.tags: "${contact.tags}" relates to ${target}, but tags are ` +
      `${tag.uid}. Map that type too: sources.tag = { contentType: '${target}' }.`
  );
};

const resolveSources = (app: App): Sources => {
  const options = app.options.sources as Partial<Record<Kind, Parameters<typeof resolveSource>[1]>>;
  const describe = attributesOf(app);
  const sources = new Map<Kind, Source>();
  for (const kind of KINDS) {
    const source = resolveSource(kind, options[kind], describe, () => siteTypes(app));
    sources.set(kind, source);
  }
  const contact = sources.get('contact') as Source;
  const target = contact.tags ? describe(contact.uid)?.[contact.tags]?.target : undefined;
  const explicit = options.contact?.fields?.tags !== undefined;
  sources.set('contact', checkTags(contact, sources.get('tag') as Source, explicit, target));
  return sources;
};

/**
 * Where this site keeps its CRM objects: the plugin's own types, or the ones that its options map.
 * @throws MappingError, which stops the boot and lists what is possible.
 */
export const getSources = (app: App): Sources => app.part(resolveSources);

/** The content types that the site's options name as forms whose sender is added to the CRM. */
export const getForms = (app: App): Form[] =>
  app.options.forms
    .map((option, index) => resolveForm(index, option, attributesOf(app), () => siteTypes(app)))
    .filter((_form, index) => app.options.forms[index]?.addSender);

export const getSource = (app: App, kind: Kind): Source => {
  const source = getSources(app).get(kind);
  if (!source) throw new Error(`switchboard: no source for ${kind}`);
  return source;
};

/** The same, with what its content type says of drafts, languages and components. */
export const getInspected = (app: App, kind: Kind): WatchedSource =>
  inspectSource(app, getSource(app, kind), getSource(app, 'tag'));

const plan = (app: App): WatchPlan => planWatch(app, getSources(app), getForms(app));

/** Which types this site's writes are watched of. */
export const getWatchPlan = (app: App): WatchPlan => app.part(plan);

/** Every event that a write to a type may cause. */
export const eventsAbout = (app: App, uid: string): readonly string[] =>
  getWatchPlan(app).eventsByUid.get(uid) ?? [];
