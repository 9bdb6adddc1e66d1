'use strict';

const fs = require('node:fs');

const TICKS_A_SECOND = 100;

/** Fields of /proc/<pid>/stat from the third on, which follows the command's name. */
const statOf = (pid) => {
  try {
    const text = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null;
  }
};

const childrenOf = (pid) => {
  try {
    return fs
      .readdirSync(`/proc/${pid}/task`)
      .flatMap((task) =>
        fs.readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim().split(' ')
      )
      .filter(Boolean);
  } catch {
    return [];
  }
};

/** The id of the process that started one. */
const parentOf = (pid) => Number(statOf(pid)[1]);

/** Seconds of the processor that a process, its children, and those that have ended took so far. */
const secondsOf = (pid) => {
  const stat = statOf(pid);
  if (!stat) return 0;
  const own = stat.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_A_SECOND;
  return childrenOf(pid).reduce((sum, child) => sum + secondsOf(child), own);
};

const ownSeconds = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};

/**
 * What one test file costs: `TEST_COSTS=<file>` adds a line of JSON for each. `runner` and `sites` are
 * seconds of the processor, of jest's process and of those that it started; the rest is counted by
 * `costs.ts`, in seconds too.
 */
class FileCosts {
  began = Date.now();
  own = ownSeconds();
  all = secondsOf(process.pid);

  constructor(testPath) {
    this.file = testPath.replace(/^.*\/tests\//, '');
  }

  write(counted) {
    const own = ownSeconds() - this.own;
    const round = (value) => Math.round(value * 100) / 100;
    const line = {
      file: this.file,
      wall: round((Date.now() - this.began) / 1000),
      runner: round(own),
      sites: round(secondsOf(process.pid) - this.all - own),
      ...counted,
    };
    fs.appendFileSync(process.env.TEST_COSTS, `${JSON.stringify(line)}\n`);
  }
}

module.exports = { FileCosts, parentOf, secondsOf };
