import type { ImportRow } from './columns';

/** What became of some rows. */
export interface BatchResult {
  created: number;
  updated: number;
  unchanged: number;
  failures: { row: ImportRow; message: string }[];
}
