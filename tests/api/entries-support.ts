import type { DatabaseKind } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { type EventLog, type LoggedEvent, openEventLog } from './crm-helpers';

export const STORY = 'api::story.story';
export const WRITER = 'api::writer.writer';
export const NOTICE = 'api::notice.notice';

export const ENTRY_EVENTS = ['created', 'updated', 'published', 'unpublished', 'deleted'].map(
  (action) => `entry.${action}`
);

export interface EntrySite {
  site: Site;
  log: EventLog;
  /** A call of the document service. */
  documents(uid: string, method: string, params: object): Promise<any>; // eslint-disable-line @typescript-eslint/no-explicit-any
  /** A call of the query engine. */
  query(uid: string, method: string, params: object): Promise<any>; // eslint-disable-line @typescript-eslint/no-explicit-any
  /** What was queued since the last call, a line an event. */
  said(): Promise<string[]>;
}

/** `published fr headline,teaser`: what happened, in which language, what differs; drafts say so. */
export const lineOf = ({ event, data }: LoggedEvent): string =>
  [
    event.replace(/^entry\./, ''),
    ...(data.status === 'draft' ? ['draft'] : []),
    ...(data.locale ? [data.locale] : []),
    ...(data.changed ? [`[${data.changed.join()}]`] : []),
  ].join(' ');

/** A site whose languages are English and French, for all tests of the `describe` it is called in. */
export const useEntrySite = (
  database: DatabaseKind,
  entries: unknown,
  started: (site: EntrySite) => void,
  sources: object = {},
  events: string[] = ENTRY_EVENTS
): void => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({
      database,
      options: { webhooks: { dispatch: false }, sources: { entries, ...sources } },
    });
    await site.evaluate(({ strapi }) =>
      strapi.plugin('i18n').service('locales').create({ code: 'fr', name: 'French' })
    );
    const log = await openEventLog(site, events);
    started({
      site,
      log,
      documents: (uid, method, params) => site.control('documents', { uid, method, params }),
      query: (uid, method, params) => site.control('query', { uid, method, params }),
      said: async () => (await log.take()).map(lineOf),
    });
  }, 180_000);
  afterAll(() => site?.stop(), 60_000);
};
