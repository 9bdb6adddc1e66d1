const budgetOf = (row, database) =>
  typeof row.budget === 'function' ? row.budget(database) : row.budget;

const isMet = (budget, value, ratio) => {
  const judged = budget?.of === 'value' ? value : ratio;
  if (!budget || judged === null) return null;
  if (budget.max !== undefined) return judged <= budget.max;
  return judged >= budget.min || (budget.or !== undefined && ratio >= budget.or);
};

/** One line of the table: a row's result beside its budget. */
export const judge = (row, database, result) => {
  const budget = budgetOf(row, database) ?? null;
  const { value = null, baseline = null, note = null, skip = null, failed = false } = result;
  const ratio = result.ratio ?? (value !== null && baseline ? value / baseline : null);
  const { name, what, unit = '' } = row;
  const met = isMet(budget, value, ratio);
  return { database, name, what, unit, value, baseline, ratio, budget, met, note, skip, failed };
};

const number = (value, unit) => {
  if (value === null) return '-';
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)}${unit.startsWith('/') ? unit : unit ? ` ${unit}` : ''}`;
};

const limit = (budget, unit) => {
  if (!budget) return '';
  const of = budget.of === 'value' ? ` ${unit}` : '';
  const or = budget.or === undefined ? '' : ` or ${budget.or} x`;
  return budget.max !== undefined ? `<= ${budget.max}${of}` : `>= ${budget.min}${of}${or}`;
};

const cells = (line) => [
  line.database,
  line.what,
  number(line.value, line.unit),
  number(line.baseline, line.unit),
  line.ratio === null ? '-' : `${line.ratio.toFixed(2)} x`,
  limit(line.budget, line.unit),
  line.skip ?? (line.met === null ? '' : line.met ? 'yes' : 'NO'),
];

const HEAD = ['database', 'what', 'value', 'baseline', 'ratio', 'budget', 'met'];

/** A Markdown table, padded so that it reads as well in a terminal. */
export const toTable = (results) => {
  const lines = results.map(cells);
  const widths = HEAD.map((head, at) =>
    Math.max(head.length, ...lines.map((line) => line[at].length))
  );
  const draw = (line) => `| ${line.map((cell, at) => cell.padEnd(widths[at])).join(' | ')} |`;
  const notes = results.filter(({ note }) => note);
  return [
    draw(HEAD),
    `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`,
    ...lines.map(draw),
    ...notes.map(({ database, name, note }) => `\n${database}, ${name}: ${note}`),
  ].join('\n');
};
