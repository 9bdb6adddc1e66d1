'use strict';

const { env } = process;

/** Where the database servers of the tests are; README.md lists the variables. */
exports.SERVERS = {
  postgres: {
    host: env.TEST_POSTGRES_HOST ?? '127.0.0.1',
    port: Number(env.TEST_POSTGRES_PORT ?? 5432),
    user: env.TEST_POSTGRES_USER ?? 'postgres',
    password: env.TEST_POSTGRES_PASSWORD ?? 'root',
  },
  mysql: {
    host: env.TEST_MYSQL_HOST ?? '127.0.0.1',
    port: Number(env.TEST_MYSQL_PORT ?? 3306),
    user: env.TEST_MYSQL_USER ?? 'root',
    password: env.TEST_MYSQL_PASSWORD ?? '',
  },
};
