import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { Subject } from '../../../shared/contracts/webhooks';
import { getOptions } from '../config';
import { currentExecutor, type Executor, table } from '../database/connection';
import { inRetriedTransaction } from '../database/retry';
import { insertRows } from '../database/insert-rows';
import { bodyOf, type FrozenMessage } from './deliveries/messages';
import { uuidV7 } from './rules/uuid-v7';
import { numberEvents } from './journal/numbering';
import { JOURNAL_TABLE, type JournalRow, REPLAYS_TABLE } from './journal/tables';

/** The journal: what was published, kept for `webhooks.journalDays`; docs/management-api.md#the-journal. */

/** An event for the journal. */
export interface JournalEntry extends FrozenMessage {
  subject: Subject | null;
  /** The webhooks that are sent it. */
  webhooks: readonly number[];
}

/** A page of the journal. */
export interface JournalPage {
  /** Envelopes, each as the JSON text of an object. */
  envelopes: string[];
  /** The place up to which the reader has now seen everything. */
  last: number;
}

/** Characters of a page, beyond which it has fewer events than were asked for, but one at least. */
const PAGE_CHARACTERS = 4_000_000;
const READ_AT_ONCE = 10;
const DAY_MS = 86_400_000;
const BATCH = 500;

/** Whether events are kept in the journal. */
export const hasJournal = (strapi: Core.Strapi): boolean =>
  getOptions(strapi).webhooks.journalDays > 0;

const rows = (strapi: Core.Strapi, executor: Executor): Knex.QueryBuilder =>
  table(strapi, executor, JOURNAL_TABLE);

/** Keeps events in `executor`'s transaction: they are there if and only if it commits. */
export const insertEntries = (
  strapi: Core.Strapi,
  executor: Executor,
  entries: readonly JournalEntry[]
): Promise<void> =>
  insertRows(
    strapi,
    executor,
    JOURNAL_TABLE,
    entries.map(({ event, at, frame, data, subject, webhooks }) => ({
      entry_id: uuidV7(at),
      event,
      created_at: at,
      subject_type: subject?.type ?? null,
      subject_id: subject?.id ?? null,
      subject_label: subject?.label ?? null,
      webhooks: webhooks.length > 0 ? JSON.stringify(webhooks) : null,
      frame,
      data,
    }))
  );

type Envelope = Pick<JournalRow, 'number' | 'entry_id' | 'frame' | 'data'>;

/**
 * Events after a place of the journal, in the order in which they can be read: an event whose
 * transaction commits late comes late, and none is passed.
 * @param after the `last` of the page before; 0 for the beginning
 */
export const readJournal = async (
  strapi: Core.Strapi,
  { after, limit }: { after: number; limit: number }
): Promise<JournalPage> => {
  const given = await numberEvents(strapi);
  const executor = await currentExecutor(strapi);
  // A place that nobody was given is one of a database that a backup took the place of.
  let last = after > given ? 0 : after;
  const envelopes: string[] = [];
  let characters = 0;
  while (envelopes.length < limit && characters < PAGE_CHARACTERS) {
    const wanted = Math.min(READ_AT_ONCE, limit - envelopes.length);
    const found = (await rows(strapi, executor)
      .select('number', 'entry_id', 'frame', 'data')
      .where('number', '>', last)
      .orderBy('number')
      .limit(wanted)) as Envelope[];
    for (const { number, entry_id: id, ...pieces } of found) {
      const envelope = bodyOf(id, pieces);
      if (envelopes.length > 0 && characters + envelope.length > PAGE_CHARACTERS) {
        return { envelopes, last };
      }
      envelopes.push(envelope);
      characters += envelope.length;
      last = Number(number);
    }
    if (found.length < wanted) break;
  }
  return { envelopes, last };
};

/**
 * Removes up to 500 events that are older than the journal's days; all of them are, where there is no
 * journal (any more). @returns whether there may be others
 */
export const removeOldEntries = async (strapi: Core.Strapi, now: number): Promise<boolean> => {
  const executor = await currentExecutor(strapi);
  const before = now - getOptions(strapi).webhooks.journalDays * DAY_MS;
  const ids = (await rows(strapi, executor)
    .where('created_at', '<', before)
    .orderBy(['created_at', 'id'])
    .limit(BATCH)
    .pluck('id')) as number[];
  if (ids.length > 0) {
    await inRetriedTransaction(strapi, async ({ trx }) => {
      await rows(strapi, trx).whereIn('id', ids).delete();
      await table(strapi, trx, REPLAYS_TABLE).whereIn('journal_id', ids).delete();
    });
  }
  return ids.length === BATCH;
};
