'use strict';

// The samples of examples/receivers: what each needs, and a copy of it that is ready to run. Copies are
// made once for each state of a sample, outside of the repository, whose node_modules they would find.
//
//   node tests/support/receiver-samples.js packages   the Debian packages that they need
//   node tests/support/receiver-samples.js install    makes every copy
const { spawnSync } = require('node:child_process');
const { createHash } = require('node:crypto');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const SAMPLES = path.resolve(__dirname, '../../examples/receivers');
const COPIES = path.join(os.tmpdir(), 'switchboard-receivers');
const INSTALL_TIMEOUT_MS = 300_000;

/** @type {import('./receiver-samples').Sample[]} */
exports.SAMPLES = JSON.parse(fs.readFileSync(path.join(SAMPLES, 'receivers.json'), 'utf8'));

/**
 * Spring Boot is no package of Debian. Its controller is compiled and run with the Spring and the
 * Tomcat that are.
 */
const jars = (...names) => names.map((name) => `/usr/share/java/${name}.jar`).join(':');
const SPRING_CLASSPATH = jars(
  ...['core', 'beans', 'context', 'expression', 'aop', 'web', 'web.servlet'].map(
    (part) => `spring3-${part}`
  ),
  ...['catalina', 'coyote', 'juli', 'util', 'util-scan', 'jni', 'jaspic-api'].map(
    (part) => `tomcat9-${part}`
  ),
  ...['servlet-api', 'annotations-api', 'api', 'jasper', 'jasper-el', 'el-api', 'jsp-api'].map(
    (part) => `tomcat9-${part}`
  ),
  ...['jackson-databind', 'jackson-core', 'jackson-annotations', 'commons-logging']
);
const INSTEAD = {
  spring: {
    packages: ['default-jdk-headless', 'libspring-web-servlet-java', 'libtomcat9-java'].concat(
      'libjackson2-databind-java'
    ),
    install: [
      'javac',
      ...['-nowarn', '-Xlint:-options', '--release', '8', '-d', 'classes', '-cp', SPRING_CLASSPATH],
      'src/main/java/receiver/WebhookController.java',
      path.join(__dirname, 'TomcatServer.java'),
    ],
    run: ['java', '-cp', `classes:${SPRING_CLASSPATH}`, 'receiver.TomcatServer'],
  },
};

/** Debian's packages that come with a language. */
const OF_RUNTIME = { mono: ['mono-mcs', 'libmono-system-runtime-serialization4.0-cil'] };

/** The Debian packages that a sample names as its `install`. */
const packagesOf = (sample) =>
  INSTEAD[sample.folder]?.packages ??
  (sample.install[0] === 'apt-get'
    ? sample.install.slice(2).filter((word) => !word.startsWith('-'))
    : []);

const installOf = (sample) => {
  const { install } = INSTEAD[sample.folder] ?? sample;
  // Packages of the machine are not the tests' to install.
  return install[0] === 'apt-get' ? [] : install;
};

const isInstalled = (name) => {
  const { status, stdout } = spawnSync('dpkg-query', ['-W', '-f', '${db:Status-Status}', name], {
    encoding: 'utf8',
  });
  return status === 0 && stdout === 'installed';
};

/** Why a sample cannot be run on this machine, or null. */
exports.lacks = (sample) => {
  const missing = packagesOf(sample).find((name) => !isInstalled(name));
  if (missing) return `the package ${missing} is not on this machine`;
  const programs = [installOf(sample)[0], (INSTEAD[sample.folder] ?? sample).run[0]];
  const absent = programs.find(
    (program) => program && !program.startsWith('./') && spawnSync('which', [program]).status !== 0
  );
  return absent ? `there is no ${absent} on this machine` : null;
};

/** Not what a run in the sample's own folder left there. */
const isOurs = (file) =>
  !/(?:^|\/)(?:node_modules|\.next|var|vendor|target|events)(?:\/|$)|^go\/receiver$|\.exe$/.test(
    path.relative(SAMPLES, file)
  );

const stateOf = (folder) => {
  const hash = createHash('sha256').update(process.version);
  for (const name of fs.readdirSync(folder, { recursive: true }).sort()) {
    const file = path.join(folder, name);
    if (isOurs(file) && fs.statSync(file).isFile())
      hash.update(`${name}\0`).update(fs.readFileSync(file));
  }
  return hash.digest('hex').slice(0, 12);
};

/**
 * A copy of a sample with everything installed or compiled.
 * @returns {{ folder: string, command: string[] }} where to run which command
 */
exports.install = (sample) => {
  const source = path.join(SAMPLES, sample.folder);
  const { run } = INSTEAD[sample.folder] ?? sample;
  const folder = path.join(COPIES, `${sample.folder}-${stateOf(source)}`);
  const finished = path.join(folder, '.installed');
  if (fs.existsSync(finished)) return { folder, command: run };
  fs.rmSync(folder, { recursive: true, force: true });
  fs.cpSync(source, folder, { recursive: true, filter: isOurs });
  const [program, ...args] = installOf(sample);
  if (program) {
    const { WEBHOOK_SECRET: _, ...env } = process.env;
    const extra = program === 'npm' ? ['--no-audit', '--no-fund', '--prefer-offline'] : [];
    const done = spawnSync(program, [...args, ...extra], {
      cwd: folder,
      env: { ...env, NODE_ENV: 'production', NEXT_TELEMETRY_DISABLED: '1' },
      encoding: 'utf8',
      timeout: INSTALL_TIMEOUT_MS,
    });
    if (done.status !== 0) {
      throw new Error(
        `${sample.folder}: ${program} failed: ${done.error?.message ?? ''}${done.stdout}${done.stderr}`
      );
    }
  }
  fs.writeFileSync(finished, '');
  return { folder, command: run };
};

const commands = {
  packages: () => {
    const names = exports.SAMPLES.flatMap(packagesOf).concat(...Object.values(OF_RUNTIME));
    console.log([...new Set(names)].join('\n'));
  },
  install: () => {
    for (const sample of exports.SAMPLES) {
      const reason = exports.lacks(sample);
      if (reason) console.log(`examples/receivers/${sample.folder}: ${reason}`);
      else console.log(exports.install(sample).folder);
    }
  },
};
if (require.main === module) commands[process.argv[2]]();
