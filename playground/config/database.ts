import type { Core } from '@strapi/strapi';
import path from 'node:path';

interface SqliteConnection {
  pragma(statement: string): unknown;
}

type Done = (error: Error | null, connection: SqliteConnection) => void;

export default ({ env }: Core.Config.Shared.ConfigParams) => ({
  connection: {
    client: 'sqlite',
    connection: {
      filename: path.resolve(__dirname, '../..', env('DATABASE_FILENAME', '.tmp/data.db')),
    },
    useNullAsDefault: true,
    pool: {
      // Write-ahead log: about thirty times the commits a second of the default journal, and
      // readers do not wait for the writer. It survives a killed process as the default does.
      afterCreate(connection: SqliteConnection, done: Done) {
        connection.pragma('journal_mode = WAL');
        // A lock is waited for with the event loop held: longer would be a pause of the whole site.
        connection.pragma('busy_timeout = 50');
        done(null, connection);
      },
    },
  },
});
