'use strict';

// Boots the site as often as the test process asks for it, without the admin panel's files (its API is
// there), and answers over the IPC channel: an operation that came over HTTP would run inside a
// request's context and would not look like a site's own code.
const path = require('node:path');
const { createStrapi } = require('@strapi/strapi');
const { createControl } = require('./control');
const { dropRepeatedHandlers, keepAbilityOfSuperAdmins } = require('./quick-host');

const answerOperations = (strapi) => {
  const control = createControl(strapi);
  process.on('message', async ({ id, op, args }) => {
    if (id === undefined) return;
    let reply;
    try {
      reply = { id, result: await control(op, args ?? {}) };
    } catch (error) {
      const { name, message, stack, code, details } = error ?? {};
      reply = { id, error: { name, message: message ?? String(error), stack, code, details } };
    }
    if (process.connected) process.send(reply);
  });
};

/** Node's own, without which no signal is heard and nothing waits for a message. */
const ownListeners = process.eventNames().map((name) => [name, process.rawListeners(name)]);

/** The host takes all listeners of the process away when it is destroyed. */
const restoreListeners = () => {
  process.removeAllListeners();
  for (const [name, listeners] of ownListeners)
    for (const listener of listeners) process.on(name, listener);
};

const setEnvironment = (env) => {
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
  // The host does so once, while its modules are loaded.
  process.env.NODE_ENV ||= 'development';
};

/** Has `heard` told what the process prints, in place of printing it, until the function it gives is called. */
const listen = (heard) => {
  for (const name of ['stdout', 'stderr']) {
    process[name].write = (chunk, encoding, done) => {
      heard(name, String(chunk));
      const written = typeof encoding === 'function' ? encoding : done;
      if (written) process.nextTick(written);
      return true;
    };
  }
  return () => {
    for (const name of ['stdout', 'stderr']) {
      delete process[name].write;
      process[name].removeAllListeners('error');
    }
  };
};

/** Runs the command `switchboard` as bin/switchboard.js does, and answers with what it prints. */
const runCommand = async (words) => {
  const printed = { stdout: '', stderr: '' };
  const printAgain = listen((name, text) => (printed[name] += text));
  const code = await require('../../bin/lib/command').run(words);
  printAgain();
  return { code, ...printed };
};

const exit = process.exit.bind(process);

/** Runs a program until it would end the process. @returns the code that it would end with */
const untilExit = (heard, run) =>
  new Promise((resolve) => {
    const printAgain = listen(heard);
    process.exit = (code = process.exitCode ?? 0) => {
      process.exit = exit;
      printAgain();
      resolve(code);
    };
    void run();
  });

/** Runs a command of the host's own as bin/strapi.js does. */
const runHostCommand = async (words) => {
  const printed = { stdout: '', stderr: '' };
  const cli = path.join(require.resolve('@strapi/strapi/package.json'), '../dist/cli');
  const code = await untilExit(
    (name, text) => (printed[name] += text),
    () => require(cli).runCLI([process.execPath, 'strapi', ...words])
  );
  return { code, ...printed };
};

/** Runs `switchboard worker`, which says what it prints as it comes, until a signal ends it. */
const runWorker = async (words) => {
  const code = await untilExit(
    (name, text) => process.send({ printed: { [name]: text } }),
    () => require('../../bin/lib/command').run(words).then(process.exit)
  );
  return { code };
};

const COMMANDS = { switchboard: runCommand, worker: runWorker, strapi: runHostCommand };

const followParent = (strapi) => {
  process.on('disconnect', async () => {
    await strapi?.destroy().catch(() => {});
    exit(0);
  });
  process.on('message', async ({ retire, boot, command }) => {
    if (retire) {
      await strapi.destroy();
      restoreListeners();
      followParent(null);
      process.send({ retired: true });
    }
    if (boot) {
      restoreListeners();
      setEnvironment(boot);
      await start();
    }
    if (command) {
      setEnvironment(command.env);
      const ended = await COMMANDS[command.program](command.words);
      restoreListeners();
      followParent(null);
      process.send({ ended });
    }
  });
};

const start = async () => {
  /** What has to be ended: there is nothing before a site meets its database. */
  let begun;
  try {
    const strapi = createStrapi({
      appDir: __dirname,
      distDir: process.env.SITE_DIST_DIR ?? path.resolve(__dirname),
      serveAdminPanel: false,
      // As `strapi develop` starts the host.
      autoReload: process.env.SITE_AUTO_RELOAD === 'true',
    });
    const bootstrap = strapi.bootstrap.bind(strapi);
    strapi.bootstrap = () => {
      begun = strapi;
      return bootstrap();
    };
    // Unlike `start()`, which ends the process where it fails.
    await strapi.load();
    await strapi.listen();
    dropRepeatedHandlers(strapi);
    keepAbilityOfSuperAdmins(strapi);
    answerOperations(strapi);
    followParent(strapi);
    process.send({ ready: true });
    process.stdout.write(`SITE READY ${strapi.config.get('server.absoluteUrl')}\n`);
  } catch (error) {
    const failed = `${error?.stack ?? error}\n`;
    await begun?.destroy().catch(() => {
      process.stderr.write(failed);
      exit(1);
    });
    restoreListeners();
    followParent(null);
    process.send({ failed });
  }
};

followParent(null);
