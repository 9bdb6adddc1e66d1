/** What an import is asked for, and whom it tells how it gets on. */
export interface ImportRun {
  /** Says what would become of each row, and changes nothing. */
  dryRun?: boolean;
  watch?: ImportWatch;
}

/** Rows so far. */
export interface ImportCounts {
  total: number;
  created: number;
  updated: number;
  unchanged: number;
  failed: number;
}

export interface ImportWatch {
  /** The header is right, and rows come next. */
  header(headings: readonly string[]): Promise<void>;
  /** A row that was not imported, with its cells as they came; or a level that differs. */
  failed(line: number, message: string, cells: readonly string[]): void;
  /** Some rows more are done. */
  advance(counts: ImportCounts): Promise<void>;
}
