'use strict';

/** Rows of texts as lines, each column as wide as its widest text. */
const columns = (rows) => {
  const widths = [];
  for (const row of rows) {
    row.forEach((text, at) => {
      widths[at] = Math.max(widths[at] ?? 0, text.length);
    });
  }
  return rows
    .map((row) =>
      row
        .map((text, at) => text.padEnd(widths[at]))
        .join('  ')
        .trimEnd()
    )
    .join('\n');
};

module.exports = { columns };
