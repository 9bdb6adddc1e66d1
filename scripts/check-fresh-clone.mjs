// The view of someone who has cloned the repository and nothing else: the first lines of `npm test`, all
// of `npm start` (the site, the receiver's page with an event on it, the till), and how the commands
// that need an install say so. The clone lies where no node_modules is in it or above it.
// Usage: node scripts/check-fresh-clone.mjs [--adopt]
// With --adopt this checkout gets what the clone installs and then the plugin that it builds, each as soon as
// that is there, and in the end its playground: then it needs no install and no build of its own.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { freePort, start, waitFor } from './lib/newcomer/programs.mjs';
import { ROOT, SCRATCH } from './lib/paths.mjs';

const INSTALL_MS = 900_000;
const READY_MS = 600_000;
const FIRST_LINE_MS = 60_000;
const MODULES = 'node_modules';
const PLUGIN = 'dist';
/** Other folders that the programs of a fresh clone build into. */
const BUILT = ['playground/dist', 'playground/build', 'playground/.env'];

const { values: options } = parseArgs({ options: { adopt: { type: 'boolean' } } });
const parent = fs.mkdtempSync(path.join(os.tmpdir(), 'switchboard-clone-'));
const clone = path.join(parent, 'switchboard');
const began = Date.now();
const say = (text) => console.log(`[clone ${Math.round((Date.now() - began) / 1000)} s] ${text}`);

const mustRun = (program, ...args) => {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}`);
  return stdout;
};

/** By a program: it takes half of what Node takes for so many files. */
const remove = (place) => mustRun('rm', '-rf', place);

const makeClone = () => {
  for (let folder = parent; folder !== path.dirname(folder); folder = path.dirname(folder)) {
    if (fs.existsSync(path.join(folder, 'node_modules'))) {
      throw new Error(`There is a node_modules in ${folder}: a clone there would not be fresh.`);
    }
  }
  mustRun('git', 'clone', '--quiet', ROOT, clone);
};

/**
 * If SQLite's driver cannot be loaded, it is compiled. With fewer optimizations that takes two fifths of the
 * time, and the driver is some fifth slower within SQLite.
 */
const COMPILERS = {
  CFLAGS: process.env.CFLAGS ?? '-O1',
  CXXFLAGS: process.env.CXXFLAGS ?? '-O1',
};

/** Runs a command in the clone until `condition` holds for it, and stops it then. */
const watch = async (command, env, milliseconds, condition) => {
  const program = start(command, clone, env);
  try {
    return await waitFor(`what "${command}" shall do`, () => condition(program), milliseconds);
  } catch (error) {
    throw new Error(`${error.message}\n${program.output().slice(-5000)}`, { cause: error });
  } finally {
    await program.stop();
  }
};

/** True if a program has printed a text; throws if it ended without. */
const hasSaid = (program, text) => {
  if (program.output().includes(text)) return true;
  if (program.exited()) throw new Error(`it ended before it said "${text}"`);
  return false;
};

const isAnswered = async (url, holds) => {
  const answer = await fetch(url).catch(() => undefined);
  return answer?.ok === true && holds(await answer.text());
};

/** Scripts that install by themselves, or need nothing that is installed. */
const WORKS_WITHOUT = /^(start|test(:.+)?|demo:events|prepublishOnly|postpack)$/;

/**
 * The commands that install nothing say in one line what to run. Their lines are run as `npm run --silent`
 * runs them, without npm's own half second: some of them run npm, which adds nothing to that.
 */
const namesTheInstall = async () => {
  const { scripts } = JSON.parse(fs.readFileSync(path.join(clone, 'package.json'), 'utf8'));
  const check = async ([name, line]) => {
    const child = spawn('sh', ['-c', line], {
      cwd: clone,
      env: { ...process.env, npm_config_loglevel: 'silent' },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text) => (said += text));
    const [status] = await once(child, 'close');
    const lines = said.trim().split('\n');
    if (status === 0 || lines.length !== 1 || !lines[0].includes('npm ci')) {
      throw new Error(`npm run ${name} ended with ${status} and said:\n${said}`);
    }
  };
  await Promise.all(
    Object.entries(scripts)
      .filter(([name]) => !WORKS_WITHOUT.test(name))
      .map(check)
  );
};

const firstLinesOfTests = async () => {
  await watch('npm test', {}, FIRST_LINE_MS, (program) => hasSaid(program, 'npm ci'));
  // It was stopped within its install.
  remove(path.join(clone, MODULES));
};

/** The clone goes on using its own. @param change is done before others see the copy */
const adoptCopy = (name, flags, change = () => {}) => {
  const arriving = path.join(SCRATCH, name);
  const copy = (how) => {
    remove(arriving);
    mustRun('cp', how, path.join(clone, name), arriving);
  };
  fs.mkdirSync(SCRATCH, { recursive: true });
  try {
    copy(flags);
  } catch {
    copy('-a');
  }
  change(arriving);
  remove(path.join(ROOT, name));
  fs.renameSync(arriving, path.join(ROOT, name));
  say(`${name} is handed over`);
};

/** Links where both are on one file system. */
const adoptModules = () =>
  adoptCopy(MODULES, '-al', (arriving) => {
    // npm rewrites it in place: it must not be the clone's.
    const list = path.join(arriving, '.package-lock.json');
    const text = fs.readFileSync(list);
    fs.rmSync(list);
    fs.writeFileSync(list, text);
  });

/** If nothing differs from the last commit, its clone's build is also this checkout's. */
const isUnchanged = () => mustRun('git', '-C', ROOT, 'status', '--porcelain') === '';

const adoptPlugin = () => {
  if (isUnchanged()) adoptCopy(PLUGIN, '-a');
};

const adoptPlayground = () => {
  if (!isUnchanged()) return;
  for (const name of BUILT) {
    const from = path.join(clone, name);
    if (!fs.existsSync(from)) continue;
    remove(path.join(ROOT, name));
    // Across file systems, too.
    mustRun('mv', from, path.join(ROOT, name));
  }
};

const startsAll = async () => {
  const [PORT, RECEIVER_PORT, TILL_PORT] = [await freePort(), await freePort(), await freePort()];
  const site = `http://127.0.0.1:${PORT}`;
  const receiver = `http://127.0.0.1:${RECEIVER_PORT}`;
  const adoptions = options.adopt
    ? [
        ['Building the plugin', adoptModules],
        ['Building the admin panel', adoptPlugin],
      ]
    : [];
  await watch(
    'npm start',
    { PORT, RECEIVER_PORT, TILL_PORT, ...COMPILERS },
    INSTALL_MS + READY_MS,
    async (program) => {
      const [next] = adoptions;
      if (next && hasSaid(program, next[0])) {
        adoptions.shift();
        next[1]();
      }
      return (
        hasSaid(program, 'The playground is ready.') &&
        (await isAnswered(`${site}/admin`, (page) => page.includes('<html'))) &&
        (await isAnswered(`${receiver}/`, (page) => page.includes('<html'))) &&
        (await isAnswered(`${receiver}/arrivals.json`, (text) =>
          JSON.parse(text).some(({ refused }) => refused === null)
        )) &&
        (await isAnswered(`http://127.0.0.1:${TILL_PORT}/`, (page) =>
          page.includes('<h1>Till</h1>')
        ))
      );
    }
  );
};

const runsTests = () =>
  watch('npm test', {}, READY_MS, (program) => hasSaid(program, '== unit =='));

const STEPS = [
  ['commands that need an install say so', namesTheInstall],
  ['npm test installs what is missing', firstLinesOfTests],
  ['npm start: the site, an event at the receiver, the till', startsAll],
  ['npm test begins with its suites', runsTests],
];

let passed = 0;
try {
  makeClone();
  for (const [name, work] of STEPS) {
    say(name);
    await work();
    passed += 1;
  }
  if (options.adopt) adoptPlayground();
  say('all of it works');
} catch (error) {
  console.error(error.stack ?? String(error));
  process.exitCode = 1;
} finally {
  remove(parent);
}
console.log(`${passed} passed, ${STEPS.length - passed} failed`);
