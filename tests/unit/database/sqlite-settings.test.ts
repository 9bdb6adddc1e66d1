import type { Core } from '@strapi/strapi';
import { Database } from '../../../server/src/database/db';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { knex, type Knex } from 'knex';

describe('the warnings about SQLite', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'switchboard-sqlite-'));
  afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

  const warningsOf = async (filename: string, pragmas: string[], client = 'sqlite') => {
    const connection: Knex = knex({
      client: 'better-sqlite3',
      connection: { filename },
      useNullAsDefault: true,
    });
    try {
      for (const pragma of pragmas) await connection.raw(`PRAGMA ${pragma}`);
      const db = { dialect: { client }, connection, inTransaction: () => false };
      return (
        (await new Database({ db } as unknown as Core.Strapi).sqliteWarnings())?.join('\n') ?? ''
      );
    } finally {
      await connection.destroy();
    }
  };
  const file = (name: string) => path.join(folder, name);

  it('are two with the defaults of the driver', async () => {
    const warnings = await warningsOf(file('a.db'), []);
    expect(warnings).toMatch(/journal_mode is delete.*WAL/);
    expect(warnings).toMatch(/waits up to 5000 ms.*busy_timeout/);
  });

  it('name one thing each', async () => {
    expect(await warningsOf(file('b.db'), ['journal_mode = WAL'])).not.toContain('WAL');
    expect(await warningsOf(file('c.db'), ['busy_timeout = 50'])).not.toContain('busy_timeout');
  });

  it('are none with the settings that the docs recommend', async () => {
    const pragmas = ['journal_mode = WAL', 'busy_timeout = 50'];
    expect(await warningsOf(file('d.db'), pragmas)).toBe('');
  });

  it('are none in memory and on other databases', async () => {
    expect(await warningsOf(':memory:', [])).toBe('');
    expect(await warningsOf(file('e.db'), [], 'postgres')).toBe('');
  });
});
