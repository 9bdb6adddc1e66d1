'use strict';

// Exits 0 when the database server named by the argument takes a connection. A process of its own,
// because jest collects its suites synchronously.
const server = require('./servers').SERVERS[process.argv[2]];

const connect = {
  async postgres() {
    const { Client } = require('pg');
    const client = new Client({ ...server, database: 'postgres', connectionTimeoutMillis: 5000 });
    await client.connect();
    await client.end();
  },
  async mysql() {
    const { createConnection } = require('mysql2/promise');
    const connection = await createConnection({ ...server, connectTimeout: 5000 });
    await connection.end();
  },
};

connect[process.argv[2]]().then(
  () => process.exit(0),
  (error) => {
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
);
