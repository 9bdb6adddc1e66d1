import { errors } from '@strapi/utils';
import { parseWithRules } from '../../http/validation';
import { isRecord } from '../../runtime/text';
import { chooseableEvents } from '../catalogue';
import { judgeHeaders } from '../rules/request-headers';
import { type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import { createWebhookInput } from './inputs';
import { webhookRules, WebhooksService } from './webhooks-service';
import type { App } from '../../app';

/** A webhook of the host's own, as its store hands it out. */
interface HostWebhook {
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

/** Parts that are not copied, and why. */
type LeftOut = { name: string; reason: string }[];

const whyNot = (event: string): string => {
  if (!COUNTERPARTS.has(event)) return 'has no counterpart';
  return event.startsWith('media.')
    ? 'no counterpart until sources.media is true'
    : 'no counterpart until sources.entries names a type';
};

/** @param isOffered whether an event is in the catalogue of this site */
export const mapEvents = (events: readonly string[], isOffered: (event: string) => boolean) => {
  const kept = new Set<string>();
  const leftOut: LeftOut = [];
  for (const event of new Set(events.map(String))) {
    const here = COUNTERPARTS.get(event);
    if (here !== undefined && isOffered(here)) kept.add(here);
    else leftOut.push({ name: event, reason: whyNot(event) });
  }
  return { kept: [...kept], leftOut };
};

/** Headers that the host sets itself and webhooks cannot change. */
const OF_THE_HOST = /^x-strapi-event$/i;

/** A host webhook's headers as own headers here. Its own take precedence over the host's `defaults`. */
export const mapHeaders = (
  own: Readonly<Record<string, unknown>>,
  defaults: Readonly<Record<string, unknown>>
) => {
  const said = new Set(Object.keys(own).map((name) => name.toLowerCase()));
  const all = [
    ...Object.entries(defaults).filter(([name]) => !said.has(name.toLowerCase())),
    ...Object.entries(own),
  ];
  const kept: [string, string][] = [];
  const leftOut: LeftOut = [];
  for (const [name, value] of all) {
    const text = String(value ?? '');
    const [problem] = judgeHeaders({ [name]: text });
    if (OF_THE_HOST.test(name)) leftOut.push({ name, reason: 'is the host’s own' });
    else if (problem) leftOut.push({ name, reason: problem.wrong.message });
    else kept.push([name, text]);
  }
  return { kept: Object.fromEntries(kept), leftOut };
};

/** Changes that receivers of the host's posts will notice; docs/from-strapi-webhooks.md. */
const CHANGES: readonly string[] = [
  'The body is { id, event, created_at, site, data } in place of { event, createdAt, model, uid, entry }: the entry is data.entry, its type (uid) data.content_type, a file data.media.',
  'Events are named entry.created, entry.updated, entry.deleted, entry.published, entry.unpublished, media.created, media.updated and media.deleted.',
  'An entry is what a full-access token reads over REST: relations as { documentId }, without private fields.',
  'Entries are those of the types in sources.entries; drafts are sent where the option says drafts: true.',
  'The header X-Service-Event is in place of X-Strapi-Event; X-Service-Delivery, X-Service-Timestamp, X-Service-Signature, webhook-id, webhook-timestamp and webhook-signature are new.',
  'Each post is signed with the secret of its webhook, which the receiver should verify.',
  'A delivery not answered with 2xx within 10 seconds is retried with the same id. Ignore ids you have already handled.',
];

/** The id of the webhook here that has a name and an address. */
const findPresent = async (app: App, name: string, url: string): Promise<number | undefined> => {
  const db = await app.db.current();
  const rows = (await db
    .table(WEBHOOKS_TABLE)
    .select('id', 'name', 'url')
    .where({ name })
    .orderBy('id')) as Pick<WebhookRow, 'id' | 'name' | 'url'>[];
  // A database may take names for equal that are not.
  const same = rows.find((row) => row.name === name && row.url === url);
  return same && Number(same.id);
};

const defaultHeaders = (app: App): Record<string, unknown> => {
  const given: unknown = app.strapi.config.get('server.webhooks.defaultHeaders');
  return isRecord(given) ? given : {};
};

/** Makes a webhook here of one of the host's. @returns the list of the result that has it, and its entry */
const copyOne = async (app: App, one: HostWebhook, offered: ReadonlySet<string>) => {
  const name = String(one.name ?? '').trim();
  const url = String(one.url ?? '').trim();
  const named = { host_webhook: String(one.id), name, url };
  const present = await findPresent(app, name, url);
  if (present !== undefined) return ['present', { ...named, id: present }] as const;
  const events = mapEvents(one.events ?? [], (event) => offered.has(event));
  const no_counterpart = events.leftOut.map(({ name: event, reason }) => ({ event, reason }));
  if (events.kept.length === 0) return ['skipped', { ...named, no_counterpart }] as const;
  const headers = mapHeaders(one.headers ?? {}, defaultHeaders(app));
  const given = { name, url, events: events.kept, headers: headers.kept, active: false };
  try {
    const input = await parseWithRules(createWebhookInput, given, webhookRules(app));
    const made = await new WebhooksService(app).create(input);
    const { id, secret = null } = made;
    const shown = { id, events: made.events, headers: made.header_names, secret };
    const headers_left_out = headers.leftOut;
    return ['copied', { ...named, ...shown, no_counterpart, headers_left_out }] as const;
  } catch (error) {
    if (!(error instanceof errors.ValidationError)) throw error;
    return ['refused', { ...named, reason: error.message }] as const;
  }
};

/**
 * Copies the host's webhooks, inactive; the host's and those with an equal name and address here are unchanged.
 * docs/from-strapi-webhooks.md
 * @returns lists: `copied` with secrets (shown again only to users who may reveal them), `present`, `skipped` without a
 * counterpart event, `refused` as invalid here; and `changes`
 */
export const copyHostWebhooks = async (app: App) => {
  const store = app.strapi.get('webhookStore') as unknown as {
    findWebhooks(): Promise<HostWebhook[]>;
  };
  const offered = new Set((await chooseableEvents(app)).map(({ event }) => event));
  type Lists = Record<'copied' | 'present' | 'skipped' | 'refused', object[]>;
  const lists: Lists = { copied: [], present: [], skipped: [], refused: [] };
  const theirs = await store.findWebhooks();
  for (const one of theirs.sort((a, b) => Number(a.id) - Number(b.id))) {
    const [list, entry] = await copyOne(app, one, offered);
    lists[list].push(entry);
  }
  return { ...lists, changes: CHANGES };
};
