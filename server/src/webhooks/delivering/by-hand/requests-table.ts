import type { PlainTable } from '../../../database/tables/plain-tables';

export const MANUAL_REQUESTS_TABLE = 'switchboard_manual_requests';

/**
 * What somebody asked a process that does not send to have sent now, for another process to do. A row
 * lives for seconds: whoever asked removes it with its answer. Times are epoch milliseconds of the
 * database's clock; `target_id` is the id of a delivery's row (`retry`) or of a webhook's (`test`);
 * `answer` is JSON.
 */
export const manualRequestsTable: PlainTable = {
  tableName: MANUAL_REQUESTS_TABLE,
  attributes: {
    id: { type: 'increments' },
    token: { type: 'string' },
    kind: { type: 'string' },
    target_id: { type: 'integer' },
    event: { type: 'string' },
    asked_at: { type: 'biginteger' },
    expires_at: { type: 'biginteger' },
    taken_at: { type: 'biginteger' },
    answer: { type: 'text' },
  },
  indexes: [{ name: 'sb_manual_token', columns: ['token'], type: 'unique' }],
};

/** A row of `switchboard_manual_requests`, as the database driver hands it out. */
export interface ManualRequestRow {
  id: number;
  token: string;
  kind: 'retry' | 'test';
  target_id: number;
  event: string | null;
  asked_at: number | string;
  expires_at: number | string;
  taken_at: number | string | null;
  answer: string | null;
}
