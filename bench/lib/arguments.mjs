export const USAGE = `npm run bench -- [options]

  --only <row,…>        only rows whose name begins so (create, deliveries, claim, …)
  --database <name,…>   sqlite, postgres, mysql (MySQL or MariaDB); all that can be reached by default
  --rounds <n>          how often each comparison is repeated; 3 by default
  --json                the results as JSON`;

const list = (text) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean);

/** @throws Error that names an unknown option. */
export const parseArguments = (given) => {
  const options = { only: [], databases: undefined, rounds: 3, json: false, help: false };
  const left = given.flatMap((part) =>
    part.startsWith('--') && part.includes('=')
      ? [part.slice(0, part.indexOf('=')), part.slice(part.indexOf('=') + 1)]
      : [part]
  );
  const next = (name) => {
    const value = left.shift();
    if (value === undefined) throw new Error(`${name} needs a value.\n\n${USAGE}`);
    return value;
  };
  while (left.length > 0) {
    const name = left.shift();
    if (name === '--json') options.json = true;
    else if (name === '--help') options.help = true;
    else if (name === '--only') options.only.push(...list(next(name)));
    else if (name === '--database') options.databases = list(next(name));
    else if (name === '--rounds') options.rounds = Math.max(1, Number(next(name)) || 1);
    else throw new Error(`Unknown option ${name}.\n\n${USAGE}`);
  }
  return options;
};
