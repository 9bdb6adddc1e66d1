import type { PlainTable } from '../../database/tables/plain-tables';
import type { Big } from '../../stock/tables';
import type { AskingKind, EventKind } from '../rules/states';

export const POS_REFUSALS_TABLE = 'switchboard_pos_refusals';

/** The latest requests of each connection's key that were refused; at most `REFUSALS_KEPT` each. */
export const posRefusalTable: PlainTable = {
  tableName: POS_REFUSALS_TABLE,
  attributes: {
    id: { type: 'increments' },
    connection_id: { type: 'integer' },
    at: { type: 'biginteger' },
    kind: { type: 'string' },
    code: { type: 'string' },
    message: { type: 'text' },
    external_id: { type: 'text' },
  },
  indexes: [{ name: 'sb_refusal_latest', columns: ['connection_id', 'at'] }],
};

export interface PosRefusalRow {
  id: number;
  connection_id: number;
  at: Big;
  kind: EventKind | AskingKind | 'ping';
  code: string;
  message: string;
  external_id: string | null;
}
