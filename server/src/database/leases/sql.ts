import type { SqlValue } from '../dialects';

export type { Executor } from '../connection';
export type SqlColumns = Readonly<Record<string, SqlValue>>;
