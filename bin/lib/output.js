'use strict';

/**
 * Standard output carries the result and nothing else: what Strapi prints while it loads, to
 * standard output like its errors, goes to standard error.
 */
const createOutput = () => {
  const write = process.stdout.write.bind(process.stdout);
  // The reader may have had enough: `| head`.
  process.stdout.on('error', (error) => {
    if (error.code !== 'EPIPE') throw error;
  });
  process.stdout.write = process.stderr.write.bind(process.stderr);
  let written = Promise.resolve();
  const put = (text) => {
    written = new Promise((resolve) => {
      write(text, () => resolve());
    });
  };
  return {
    result: (text) => put(text.endsWith('\n') ? text : `${text}\n`),
    json: (value) => put(`${JSON.stringify(value, null, 2)}\n`),
    complain: (line) => process.stderr.write(`${line}\n`),
    /** Resolves when a reader that is slow has everything. */
    flushed: () => written,
  };
};

module.exports = { createOutput };
