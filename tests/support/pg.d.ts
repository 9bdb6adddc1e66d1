/** `pg` ships no types; this is what the tests use of it. */
declare module 'pg' {
  export class Client {
    constructor(options: {
      host: string;
      port: number;
      user: string;
      password: string;
      database: string;
    });
    connect(): Promise<void>;
    query(
      statement: string,
      bindings?: unknown[]
    ): Promise<{ rows: Record<string, unknown>[]; rowCount: number | null }>;
    end(): Promise<void>;
  }
  export const types: {
    getTypeParser(type: number, format: 'binary'): (sent: Buffer) => unknown;
  };
}
