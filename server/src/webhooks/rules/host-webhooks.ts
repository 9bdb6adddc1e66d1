import { judgeHeaders } from './own-headers';

/** A webhook of the host's own, as its store hands it out. */
export interface HostWebhook {
  id: number | string;
  name: string;
  url: string;
  headers: Record<string, unknown> | null;
  events: string[] | null;
}

/** The host's events that are known here, under what name. */
const COUNTERPARTS: ReadonlyMap<string, string> = new Map([
  ['entry.create', 'entry.created'],
  ['entry.update', 'entry.updated'],
  ['entry.delete', 'entry.deleted'],
  ['entry.publish', 'entry.published'],
  ['entry.unpublish', 'entry.unpublished'],
  ['media.create', 'media.created'],
  ['media.update', 'media.updated'],
  ['media.delete', 'media.deleted'],
]);

/** What of a webhook is not copied, and why. */
export interface LeftOut {
  name: string;
  reason: string;
}

/** What becomes of a webhook's events or headers. */
export interface Mapped<Kept> {
  kept: Kept;
  leftOut: LeftOut[];
}

const whyNot = (event: string): string => {
  if (!COUNTERPARTS.has(event)) return 'has no counterpart';
  return event.startsWith('media.')
    ? 'no counterpart until sources.media is true'
    : 'no counterpart until sources.entries names a type';
};

/** @param isOffered whether an event is in the catalogue of this site */
export const mapEvents = (
  events: readonly string[],
  isOffered: (event: string) => boolean
): Mapped<string[]> => {
  const kept = new Set<string>();
  const leftOut: LeftOut[] = [];
  for (const event of new Set(events.map(String))) {
    const here = COUNTERPARTS.get(event);
    if (here !== undefined && isOffered(here)) kept.add(here);
    else leftOut.push({ name: event, reason: whyNot(event) });
  }
  return { kept: [...kept], leftOut };
};

/** The host writes it itself, whatever the webhook says. */
const OF_THE_HOST = /^x-strapi-event$/i;

/**
 * What a webhook's posts carried, as headers of its own here.
 * @param defaults those that the host adds to each webhook; one of the webhook's own goes before
 */
export const mapHeaders = (
  own: Readonly<Record<string, unknown>>,
  defaults: Readonly<Record<string, unknown>>
): Mapped<Record<string, string>> => {
  const said = new Set(Object.keys(own).map((name) => name.toLowerCase()));
  const all = [
    ...Object.entries(defaults).filter(([name]) => !said.has(name.toLowerCase())),
    ...Object.entries(own),
  ];
  const kept: [string, string][] = [];
  const leftOut: LeftOut[] = [];
  for (const [name, value] of all) {
    const text = String(value ?? '');
    const [problem] = judgeHeaders({ [name]: text });
    if (OF_THE_HOST.test(name)) leftOut.push({ name, reason: 'is the host’s own' });
    else if (problem) leftOut.push({ name, reason: problem.wrong.message });
    else kept.push([name, text]);
  }
  return { kept: Object.fromEntries(kept), leftOut };
};

/** What whoever receives the host's posts will find changed; docs/from-strapi-webhooks.md. */
export const CHANGES: readonly string[] = [
  'The body is { id, event, created_at, site, data } in place of { event, createdAt, model, uid, entry }: the entry is data.entry, its type (uid) data.content_type, a file data.media.',
  'Events are named entry.created, entry.updated, entry.deleted, entry.published, entry.unpublished, media.created, media.updated and media.deleted.',
  'An entry is what a full-access token reads over REST: relations as { documentId }, without private fields.',
  'Entries are those of the types in sources.entries; drafts are sent where the option says drafts: true.',
  'The header X-Service-Event is in place of X-Strapi-Event; X-Service-Delivery, X-Service-Timestamp, X-Service-Signature, webhook-id, webhook-timestamp and webhook-signature are new.',
  'Each post is signed with the secret of its webhook, which the receiver should verify.',
  'A delivery not answered with 2xx within 10 seconds is retried with the same id. Ignore ids you have already handled.',
];
