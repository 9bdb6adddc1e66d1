import type { SubjectType } from '../../../../shared/contracts/webhooks';
import type { PlainTable } from '../../database/tables/plain-tables';

export const JOURNAL_TABLE = 'switchboard_journal';
export const REPLAYS_TABLE = 'switchboard_journal_replays';

/**
 * Each event that was published, once, whoever asked for it, where `webhooks.journalDays` is not 0.
 * `entry_id` is the id of its envelope in the journal, `frame` and `data` are the rest of it, both as
 * the text that is sent. `webhooks` are the ids of those that were sent it when it was published, as a
 * JSON list, null where nobody was. `number` is its place in the journal, given after the commit
 * (`numbering.ts`); `created_at` is when it happened, epoch milliseconds.
 */
export const journalTable: PlainTable = {
  tableName: JOURNAL_TABLE,
  attributes: {
    id: { type: 'increments' },
    number: { type: 'biginteger' },
    entry_id: { type: 'string', column: { args: [36] } },
    event: { type: 'string' },
    created_at: { type: 'biginteger' },
    subject_type: { type: 'string' },
    subject_id: { type: 'string' },
    subject_label: { type: 'string' },
    webhooks: { type: 'text' },
    frame: { type: 'text' },
    data: { type: 'text' },
  },
  indexes: [
    { name: 'sb_journal_number', columns: ['number', 'id'] },
    { name: 'sb_journal_time', columns: ['created_at', 'id'] },
  ],
};

/** Which event of the journal which webhook was sent later, and by which recovery: each once. */
export const replaysTable: PlainTable = {
  tableName: REPLAYS_TABLE,
  attributes: {
    journal_id: { type: 'integer' },
    webhook_id: { type: 'integer' },
    recovery_id: { type: 'integer' },
  },
  indexes: [{ name: 'sb_replay', columns: ['journal_id', 'webhook_id'], type: 'unique' }],
};

/** A row of `switchboard_journal`, as the database driver hands it out. */
export interface JournalRow {
  id: number | string;
  number: number | string | null;
  entry_id: string;
  event: string;
  created_at: number | string;
  subject_type: SubjectType | null;
  subject_id: string | null;
  subject_label: string | null;
  webhooks: string | null;
  frame: string;
  data: string;
}
