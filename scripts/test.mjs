// npm test [unit|api|e2e|samples|soak] [-- <arguments of jest>]
//
// Installs and builds what is missing, runs the suites, says what ran on which database and what
// was left out, and ends with one line: "N passed, N failed". REQUIRE_ALL=1 counts whatever is
// left out as failed.
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { buildPlaygroundWhenStale } from './lib/admin-build.mjs';
import { ON_SQLITE, recordDuration } from './lib/durations.mjs';
import { writeMissingSecrets } from './lib/playground-secrets.mjs';
import { buildPluginWhenStale, findChromium, installWhatIsMissing } from './lib/prepare.mjs';
import { ROOT, SCRATCH } from './lib/paths.mjs';

const SUITES = ['unit', 'api', 'e2e'];
/**
 * Only where they are asked for: samples are run in a dozen languages and frameworks, with packages of
 * their registries, and tests of the soak boot many sites each and take their time.
 */
const ASKED_FOR = ['samples', 'soak'];
/** Set it for a second run at the same time. */
const RESULTS = process.env.TEST_RESULTS ?? path.join(SCRATCH, 'results');
const REQUIRE_ALL = process.env.REQUIRE_ALL === '1';
/** How long jest may take to go away once its results are written. */
const EXIT_GRACE_MS = 60_000;

const given = process.argv.slice(2);
const chosen = [...SUITES, ...ASKED_FOR].filter((name) => name === given[0]);
const suites = chosen.length > 0 ? chosen : SUITES;
const forwarded = chosen.length > 0 ? given.slice(1) : given;

/**
 * Twice as many as there are cores, because a quarter of the time goes by until something is due; but no more
 * sites than a machine has memory for and databases can serve at the same time.
 */
const WORKERS = Number(process.env.TEST_WORKERS) || Math.min(2 * os.availableParallelism(), 5);

const SUITE_ARGS = {
  unit: [`--maxWorkers=${WORKERS}`, '--testTimeout=20000'],
  api: [`--maxWorkers=${WORKERS}`, '--testTimeout=60000'],
  e2e: [`--maxWorkers=${WORKERS}`, '--testTimeout=120000'],
  samples: [`--maxWorkers=${WORKERS}`, '--testTimeout=20000'],
  // One at a time: the host cuts a request off after five minutes, which a large import next to
  // other work may need.
  soak: ['--runInBand', '--testTimeout=120000'],
};

const hasTests = (suite) => {
  const folder = path.join(ROOT, 'tests', suite);
  return (
    fs.existsSync(folder) &&
    fs.readdirSync(folder, { recursive: true }).some((name) => String(name).endsWith('.test.ts'))
  );
};

const readResults = (file) => {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
};

let current;
let isStopped = false;

/** Jest's workers, too, and their sites: it leaves them running where it alone is told to end. */
const endSuite = (signal) => {
  try {
    process.kill(-current.pid, signal);
  } catch {
    // It has ended.
  }
};

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    isStopped = true;
    if (current) endSuite(signal);
    process.exitCode = 1;
  });
}

/** Runs one suite; resolves with jest's own account of it and how the process ended. */
const runSuite = (suite, env) =>
  new Promise((resolve, reject) => {
    const output = path.join(RESULTS, `${suite}.json`);
    fs.rmSync(output, { force: true });
    const args = [
      '--experimental-vm-modules',
      // Each test file loads its own modules: many objects, most of them for a short time.
      '--max-semi-space-size=32',
      '--disable-warning=ExperimentalWarning',
      path.join(ROOT, 'node_modules/jest/bin/jest.js'),
      '--selectProjects',
      suite,
      ...SUITE_ARGS[suite],
      '--json',
      `--outputFile=${output}`,
      '--passWithNoTests',
      ...forwarded,
    ];
    // jest's JSON goes to the file and, uninvited, to standard output.
    current = spawn(process.execPath, args, {
      cwd: ROOT,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'ignore', 'inherit'],
      // A process group of its own.
      detached: true,
    });
    let stuck = false;
    let deadline;
    const watch = setInterval(() => {
      if (!fs.existsSync(output)) return;
      deadline ??= Date.now() + EXIT_GRACE_MS;
      if (Date.now() < deadline) return;
      stuck = true;
      endSuite('SIGKILL');
    }, 1000);
    current.once('error', reject);
    current.once('close', (code) => {
      clearInterval(watch);
      current = undefined;
      resolve({ results: readResults(output), code: code ?? 1, stuck });
    });
  });

/** Passed and failed of one suite; a file that could not run at all is a failure too. */
const account = (suite, { results, code, stuck }) => {
  const lines = [];
  if (!results) return { passed: 0, failed: 1, lines: [`${suite}: jest ended with ${code}`] };
  const failedFiles = results.testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((t) => t.status === 'failed')
  );
  let failed = results.numFailedTests + failedFiles.length;
  for (const file of failedFiles)
    lines.push(`failed as a whole: ${path.relative(ROOT, file.name)}`);
  const skipped = results.testResults
    .flatMap((file) => file.assertionResults)
    .filter((test) => ['pending', 'todo', 'disabled'].includes(test.status));
  // With a filter (`-t`), jest counts what the filter left out as pending.
  if (REQUIRE_ALL && forwarded.length === 0 && skipped.length > 0) {
    failed += skipped.length;
    lines.push(...skipped.map((test) => `skipped, which REQUIRE_ALL=1 forbids: ${test.fullName}`));
  }
  if (!REQUIRE_ALL && forwarded.length === 0) {
    const left = new Set(skipped.map((test) => test.ancestorTitles[0] ?? test.title));
    lines.push(...[...left].map((title) => `skipped: ${title}`));
  }
  if (stuck) {
    failed += 1;
    lines.push(`jest did not end within ${EXIT_GRACE_MS / 1000} s after the last test of ${suite}`);
  }
  if (code !== 0 && failed === 0) {
    failed = 1;
    lines.push(`${suite}: jest ended with ${code}`);
  }
  return { passed: results.numPassedTests, failed, skipped: skipped.length, results, lines };
};

const KINDS = ['sqlite', 'postgres', 'mysql'];

const countByDatabase = (results) => {
  const counts = Object.fromEntries(KINDS.map((kind) => [kind, 0]));
  for (const test of results?.testResults.flatMap((file) => file.assertionResults) ?? []) {
    if (test.status !== 'passed') continue;
    for (const kind of KINDS) if (test.fullName.includes(`[${kind}]`)) counts[kind] += 1;
  }
  return counts;
};

const duration = (from) => `${Math.round((Date.now() - from) / 1000)} s`;

const main = async () => {
  await installWhatIsMissing();
  const began = Date.now();
  const needsBuild =
    (REQUIRE_ALL && forwarded.length === 0 && suites.some((s) => s !== 'unit')) ||
    (suites.includes('e2e') && findChromium() !== undefined);
  // At the same time as the unit tests, which take the sources.
  const building = needsBuild ? buildPluginWhenStale() : Promise.resolve();
  // It is awaited, and fails the run, before what needs it.
  building.catch(() => {});
  // The built package is what a site gets, so it is tested where everything is, and in a browser. Else
  // the sources are, as they are.
  const env = needsBuild ? { SWITCHBOARD_PATH: ROOT } : {};
  fs.mkdirSync(RESULTS, { recursive: true });

  const total = { passed: 0, failed: 0 };
  const summary = [];
  let onServers = 0;
  for (const suite of suites) {
    if (isStopped) break;
    if (!hasTests(suite)) {
      summary.push(`${suite}: there are no tests in tests/${suite}`);
      continue;
    }
    if (suite !== 'unit') await building;
    if (suite === 'e2e') {
      env.CHROMIUM_PATH = findChromium();
      if (!env.CHROMIUM_PATH) {
        summary.push('e2e: skipped, no Chromium (set CHROMIUM_PATH, or install /usr/bin/chromium)');
        if (REQUIRE_ALL) total.failed += 1;
        continue;
      }
      // Once: two playgrounds that start at the same time would both make them.
      writeMissingSecrets();
      await buildPlaygroundWhenStale();
    }
    console.log(`\n== ${suite} ==`);
    const started = Date.now();
    const outcome = account(suite, await runSuite(suite, env));
    total.passed += outcome.passed;
    total.failed += outcome.failed;
    summary.push(
      `${suite}: ${outcome.passed} passed, ${outcome.failed} failed, ${outcome.skipped ?? 0} skipped (${duration(started)})`,
      ...outcome.lines.map((line) => `  ${line}`)
    );
    if (suite === 'api') {
      const counts = countByDatabase(outcome.results);
      onServers = counts.postgres + counts.mysql;
      for (const kind of KINDS) {
        const ran = counts[kind] > 0 ? `${counts[kind]} passed` : whyNot(kind);
        summary.push(`  on ${kind}: ${ran}`);
      }
    }
  }
  if (suites === SUITES)
    summary.push(`not run: ${ASKED_FOR.map((name) => `npm run test:${name}`).join(', ')}`);
  if (total.passed + total.failed === 0) {
    summary.push('No test ran.');
    process.exitCode = 1;
  }
  if (total.failed > 0) process.exitCode = 1;
  fs.writeFileSync(path.join(RESULTS, 'summary.json'), JSON.stringify(total));
  if (suites === SUITES && forwarded.length === 0 && onServers === 0 && total.failed === 0)
    recordDuration(ON_SQLITE, (Date.now() - began) / 1000);
  console.log(`\n${summary.join('\n')}\n${total.passed} passed, ${total.failed} failed`);
};

const whyNot = (kind) => {
  if (kind === 'sqlite') return 'nothing ran';
  const only = process.env.TEST_DATABASES;
  if (only && !only.split(',').includes(kind)) return `left out by TEST_DATABASES=${only}`;
  const probe = spawnSync(process.execPath, [path.join(ROOT, 'tests/support/reachable.js'), kind], {
    encoding: 'utf8',
    timeout: 10_000,
  });
  return probe.status === 0
    ? 'nothing ran'
    : `skipped, the server cannot be reached (${probe.stderr.trim() || 'no answer'})`;
};

main().catch((error) => {
  console.error(error.message);
  console.log('0 passed, 1 failed');
  process.exitCode = 1;
});
