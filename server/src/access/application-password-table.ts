import type { PlainTable } from '../database/tables/plain-tables';

export const APPLICATION_PASSWORDS_TABLE = 'switchboard_application_passwords';

/** Times are epoch milliseconds. `user_id` is an admin user's; `hash` is 128 hex digits. */
export const applicationPasswordTable: PlainTable = {
  tableName: APPLICATION_PASSWORDS_TABLE,
  attributes: {
    id: { type: 'increments' },
    user_id: { type: 'integer' },
    name: { type: 'string' },
    hash: { type: 'string' },
    created_at: { type: 'biginteger' },
    last_used_at: { type: 'biginteger' },
  },
  indexes: [
    { name: 'sb_app_password_hash', columns: ['hash'], type: 'unique' },
    { name: 'sb_app_password_user', columns: ['user_id'] },
  ],
};

/** A row of `switchboard_application_passwords`, as the database driver hands it out. */
export interface ApplicationPasswordRow {
  id: number;
  user_id: number;
  name: string;
  hash: string;
  created_at: number | string;
  last_used_at: number | string | null;
}
