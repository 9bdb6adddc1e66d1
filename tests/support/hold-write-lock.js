'use strict';

// node hold-write-lock.js <file>: holds the write lock of a SQLite database until standard input
// ends, as a second process that writes to a site's database does. Prints `held` when it has it.
const Database = require('better-sqlite3');

const database = new Database(process.argv[2], { timeout: 10_000 });
database.exec('BEGIN IMMEDIATE');
process.stdout.write('held\n');
process.stdin.resume();
process.stdin.on('end', () => {
  database.exec('ROLLBACK');
  database.close();
});
