import { spawnSync } from 'node:child_process';
import { addTo } from './add-to-config.mjs';
import { environment, start, waitFor } from './programs.mjs';
import { editFile, shell } from './project.mjs';
import { startReceiver, verifierOf } from './receiver.mjs';
import { ask } from './site.mjs';

const expect = (what, holds, found) => {
  if (!holds) throw new Error(`${what}: ${JSON.stringify(found)}`);
};

/**
 * The four newcomers. Each has a project with the package in it, its pages, and what a person would
 * have clicked together; where a page names an address, the one of this run is put in its place.
 * @typedef {{ project: string, extension: string, pages: object, url: string, port: number,
 *   accounts: { admin: string, token: string } }} Newcomer `port` is the receiver's
 */

const here = (newcomer, code) =>
  code
    .replaceAll('http://localhost:1337', newcomer.url)
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${newcomer.port}`)
    .replaceAll('https://shop.example', newcomer.url);

const runPage = (newcomer, code, env) =>
  shell(here(newcomer, code), newcomer.project, {
    STRAPI_TOKEN: newcomer.accounts.token,
    ...env,
  });

const runReadme = (newcomer, name, env) =>
  runPage(newcomer, newcomer.pages.toRun('README.md', name), env);

/** As `runReadme`, while this process goes on answering as the receiver. */
const inBackground = async (newcomer, name) => {
  const command = start(here(newcomer, newcomer.pages.toRun('README.md', name)), newcomer.project, {
    STRAPI_TOKEN: newcomer.accounts.token,
  });
  await waitFor(`the end of "${name}"`, () => command.exited());
  await command.stop();
  expect(`"${name}" is answered`, command.answer().startsWith('{'), command.output());
  return command.answer();
};

const arrival = (receiver, event) =>
  waitFor(`the event ${event}`, () => receiver.events.find((one) => one.event === event), 20_000);

/** The site's owner: a first webhook, a test, an event that verifies. */
export const asOwner = async (newcomer) => {
  const isGenuine = verifierOf(
    newcomer.pages.containing('docs/receivers.md', 'The secret of the webhook is missing')
  );
  const receiver = await startReceiver(newcomer.port, isGenuine);
  try {
    const webhook = JSON.parse(runReadme(newcomer, 'create the webhook'));
    expect('a webhook with a secret', webhook.secret?.startsWith('whsec_'), webhook);
    receiver.secret = webhook.secret;
    const test = JSON.parse(await inBackground(newcomer, 'send a test'));
    expect('the test is answered', test.ok === true && test.response_code === 204, test);
    await inBackground(newcomer, 'add a contact');
    const event = await arrival(receiver, 'contact.created');
    expect('the contact in it', event.data.email === 'ada@example.com', event);
    expect('the address of the site in it', event.site === newcomer.url, event);
    expect('nothing was refused', receiver.refused === 0, receiver);
    return { ...webhook, isGenuine };
  } finally {
    await receiver.close();
  }
};

/** The integrator: the package's own receiver, as the README starts it. */
export const asIntegrator = async (newcomer, webhook) => {
  const receiver = start(
    here(newcomer, newcomer.pages.toRun('README.md', 'start the receiver')),
    newcomer.project,
    { WEBHOOK_SECRET: webhook.secret, PORT: String(newcomer.port) }
  );
  const says = (text) =>
    waitFor(`the receiver says "${text}"`, () => {
      if (receiver.exited()) throw new Error(`the receiver ended: ${receiver.output()}`);
      return receiver.output().includes(text);
    });
  try {
    await says('listening');
    const test = JSON.parse(runReadme(newcomer, 'send a test'));
    expect('its answer', test.ok === true && test.response_code === 204, test);
    await says(`stored ping ${test.delivery_id}`);
    await ask('POST', `${newcomer.url}/api/fw-crm/v1/contacts`, {
      token: newcomer.accounts.token,
      body: { email: 'grace@example.com' },
    });
    await says('stored contact.created');
    const forged = await fetch(`http://127.0.0.1:${newcomer.port}/hooks`, {
      method: 'POST',
      headers: { 'x-service-timestamp': '1', 'x-service-signature': `sha256=${'0'.repeat(64)}` },
      body: '{}',
    });
    expect('a forged post is refused', forged.status === 401, forged.status);
  } finally {
    await receiver.stop();
  }
};

/** The shop: an item and a connection on screen, then the page's own sale. */
export const asShop = async (newcomer) => {
  const admin = async (method, path, body) =>
    (
      await ask(method, `${newcomer.url}/switchboard${path}`, {
        token: newcomer.accounts.admin,
        body,
      })
    ).data;
  await admin('POST', '/items', { sku: 'MUG-BLUE', opening: [{ quantity: 10 }] });
  const connection = await admin('POST', '/connections', {
    name: 'Till 1',
    scopes: ['sale:write', 'refund:write', 'inventory:write'],
    mode: 'live',
  });
  const credentials = { POS_KEY: connection.key, POS_SECRET: connection.secret };
  const sale = newcomer.pages.containing('docs/tills.md', 'openssl dgst');
  const first = JSON.parse(runPage(newcomer, sale, credentials));
  expect('the sale is accepted', first.ok === true && first.duplicate === false, first);
  const again = JSON.parse(runPage(newcomer, sale, credentials));
  expect('sent again it is a duplicate', again.duplicate === true, again);
  await waitFor('stock moves from 10 to 8', async () => {
    const [level] = await admin('GET', '/levels?sku=MUG-BLUE');
    return level?.quantity === 8;
  });
};

/** The lines that `create-plugin` prints, by what they are for. */
const readInstructions = (text) => ({
  entry: /^ *'?[\w-]+'?: \{\n[\s\S]*?^ *\},?$/m.exec(text)?.[0],
  sending: /^ *(await strapi\.plugin\(.+;)$/m.exec(text)?.[1],
});

const withBootstrap = (source, extension, line) => {
  const given = extension === '.ts' ? '{ strapi }: { strapi: any }' : '{ strapi }';
  const filled = source.replace(
    /^ {2}bootstrap\([^\n]*\) \{\},$/m,
    () => `  async bootstrap(${given}) {\n    ${line}\n  },`
  );
  expect('src/index has a bootstrap to fill', filled !== source, source);
  return filled;
};

const PLUGIN = 'guest-book';

/** The plugin's author, while the site is stopped: the template, and a line that sends one of its events. */
export const createPlugin = ({ project, extension }) => {
  const made = spawnSync('npx', ['switchboard', 'create-plugin', PLUGIN], {
    cwd: project,
    env: environment(),
    encoding: 'utf8',
  });
  if (made.status !== 0) {
    throw new Error(
      `npx switchboard create-plugin ended with ${made.status}:\n${made.stdout}${made.stderr}`
    );
  }
  const { entry, sending } = readInstructions(made.stdout);
  expect('it says what goes into config/plugins, and how to send', entry && sending, made.stdout);
  editFile(project, `config/plugins${extension}`, (text) => addTo(text, entry));
  editFile(project, `src/index${extension}`, (text) => withBootstrap(text, extension, sending));
};

export const eventNames = async ({ url, accounts }) => {
  const { data } = await ask('GET', `${url}/api/fw-crm/v1/webhooks/events`, {
    token: accounts.token,
  });
  return data.map(({ event }) => event);
};

/** The events of the site that are the plugin's, once it runs with it. */
export const pluginEvents = async ({ url, accounts }, before) => {
  const after = await eventNames({ url, accounts });
  const added = after.filter((name) => !before.includes(name));
  expect('two events more to choose from', added.length === 2, added);
  return added;
};

/** A webhook for everything, made before the site starts with the plugin: its event waits for nobody. */
export const subscribe = (newcomer) =>
  ask('POST', `${newcomer.url}/api/fw-crm/v1/webhooks`, {
    token: newcomer.accounts.token,
    body: { name: 'All', url: `http://127.0.0.1:${newcomer.port}/all`, events: ['*'] },
  });

/** A receiver for such a webhook. */
export const awaitPlugin = async (newcomer, isGenuine) => {
  const receiver = await startReceiver(newcomer.port, isGenuine);
  receiver.secret = (await subscribe(newcomer)).secret;
  return receiver;
};

export const pluginEventArrives = async (receiver, names) =>
  waitFor(
    'an event of the plugin',
    () => receiver.events.find(({ event }) => names.includes(event)),
    30_000
  );

/** The event of the plugin is there, and a live site does not post it to a private address. */
export const pluginEventIsRefused = async ({ url, accounts }, webhook, names) =>
  waitFor(
    'a delivery of the plugin that is refused',
    async () => {
      const { data } = await ask('GET', `${url}/api/fw-crm/v1/webhooks/${webhook.id}/deliveries`, {
        token: accounts.token,
      });
      return data.find(({ event, error }) => names.includes(event) && error === 'blocked_address');
    },
    30_000
  );
