/** `better-sqlite3` ships no types; this is what the tests use of it. */
declare module 'better-sqlite3' {
  export default class Database {
    constructor(file: string, options?: { readonly?: boolean });
    prepare(statement: string): {
      all(...values: unknown[]): Record<string, unknown>[];
      run(...values: unknown[]): { changes: number };
    };
    exec(statements: string): void;
    pragma(pragma: string, options?: { simple?: boolean }): unknown;
    close(): void;
  }
}
