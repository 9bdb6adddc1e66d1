'use strict';

const readline = require('node:readline');

/**
 * True if the first line of a stream is "yes". Anything else, an end without a line too, is a no.
 * @param {NodeJS.ReadableStream} input
 * @returns {Promise<boolean>}
 */
const readsYes = async (input) => {
  const lines = readline.createInterface({ input });
  for await (const line of lines) {
    lines.close();
    return line.trim() === 'yes';
  }
  return false;
};

module.exports = { readsYes };
