'use strict';

const path = require('node:path');

const client = (env, defaultPort) => ({
  host: env('DATABASE_HOST', '127.0.0.1'),
  port: env.int('DATABASE_PORT', defaultPort),
  database: env('DATABASE_NAME'),
  user: env('DATABASE_USERNAME'),
  password: env('DATABASE_PASSWORD'),
});

const connections = {
  sqlite: (env) => ({
    connection: { filename: path.resolve(env('DATABASE_FILENAME', '.tmp/data.db')) },
    useNullAsDefault: true,
    pool: {
      afterCreate(connection, done) {
        connection.pragma(`journal_mode = ${env('SQLITE_JOURNAL_MODE', 'WAL')}`);
        connection.pragma(`busy_timeout = ${env('SQLITE_BUSY_TIMEOUT', '50')}`);
        connection.pragma(`wal_autocheckpoint = ${env('SQLITE_CHECKPOINT_PAGES', '1000')}`);
        // What is committed outlives the process all the same, though not the machine.
        if (env('SITE_AS_USED') !== '1') connection.pragma('synchronous = OFF');
        done(null, connection);
      },
    },
  }),
  postgres: (env) => ({
    connection: { ...client(env, 5432), schema: env('DATABASE_SCHEMA', 'public') },
    pool: { min: 0, max: env.int('DATABASE_POOL_MAX', 10) },
  }),
  mysql: (env) => ({
    connection: { ...client(env, 3306), charset: 'utf8mb4' },
    pool: { min: 0, max: env.int('DATABASE_POOL_MAX', 10) },
  }),
};

module.exports = ({ env }) => {
  const kind = env('DATABASE_CLIENT', 'sqlite');
  return { connection: { client: kind, ...connections[kind](env) } };
};
