import type { SqlValue } from '../database/dialects';

export type { Executor } from '../database/connection';
export type SqlColumns = Readonly<Record<string, SqlValue>>;
