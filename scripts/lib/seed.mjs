import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { openHistory } from './playground-history.mjs';
import { seedCrmWeek } from './seed-crm-week.mjs';
import { seedShop } from './seed-shop.mjs';

const ADMIN_EMAIL = 'admin@example.test';
const WEBHOOK_NAME = 'Playground receiver';

const CONTACTS = [
  { email: 'grace@example.test', first_name: 'Grace', last_name: 'Hopper', tags: ['newsletter'] },
  { email: 'alan@example.test', first_name: 'Alan', last_name: 'Turing', tags: ['wholesale'] },
  {
    email: 'ada@example.test',
    first_name: 'Ada',
    last_name: 'Lovelace',
    job_title: 'Buyer',
    tags: ['newsletter', 'wholesale'],
  },
];
/** Content of the site can be written in these and in English. */
const LOCALES = [
  { code: 'de', name: 'German (de)' },
  { code: 'fr', name: 'French (fr)' },
];
const TAGS = [
  { name: 'Newsletter', slug: 'newsletter' },
  { name: 'Wholesale', slug: 'wholesale' },
];

const readState = (file) => {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch {
    return {};
  }
};

const createClient =
  (siteUrl) =>
  async (method, route, { token, body } = {}) => {
    const response = await fetch(`${siteUrl}${route}`, {
      method,
      headers: {
        ...(token ? { authorization: `Bearer ${token}` } : {}),
        ...(body ? { 'content-type': 'application/json' } : {}),
      },
      body: body && JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok)
      throw new Error(`${method} ${route}: ${response.status} ${text.slice(0, 400)}`);
    return text ? JSON.parse(text) : null;
  };

const registerFirstAdmin = async (call) => {
  const password =
    process.env.PLAYGROUND_ADMIN_PASSWORD ?? `Aa1-${crypto.randomBytes(9).toString('base64url')}`;
  const admin = { firstname: 'Playground', lastname: 'Owner', email: ADMIN_EMAIL, password };
  const { data } = await call('POST', '/admin/register-admin', { body: admin });
  const token = await call('POST', '/admin/api-tokens', {
    token: data.token,
    body: {
      name: 'Playground',
      description: 'Made by npm start, for the seed and the till',
      type: 'full-access',
      lifespan: null,
    },
  });
  return { login: { email: ADMIN_EMAIL, password }, apiToken: token.data.accessKey };
};

/** The webhook to the playground's receiver: made on the first start, moved if the port changed. */
const pointWebhookAt = async (crm, receiverUrl, isFirstStart) => {
  const { data } = await crm('GET', '/webhooks?per_page=100');
  const existing = data.find((webhook) => webhook.name === WEBHOOK_NAME);
  if (existing) {
    if (existing.url !== receiverUrl) {
      await crm('PATCH', `/webhooks/${existing.id}`, { url: receiverUrl });
    }
    return (await crm('GET', `/webhooks/${existing.id}`)).secret;
  }
  if (!isFirstStart) return undefined;
  const body = { name: WEBHOOK_NAME, url: receiverUrl, events: ['*'], active: true };
  return (await crm('POST', '/webhooks', body)).secret;
};

const seedCrm = async (crm) => {
  const ids = {};
  for (const tag of TAGS) ids[tag.slug] = (await crm('POST', '/tags', tag)).id;
  for (const contact of CONTACTS) {
    await crm('POST', '/contacts', { ...contact, tags: contact.tags.map((slug) => ids[slug]) });
  }
};

/** A client of the admin panel's routes, signed in as the playground's owner. */
const createAdminClient = async (call, login) => {
  const { data: session } = await call('POST', '/admin/login', { body: login });
  return (method, route, body) => call(method, route, { token: session.token, body });
};

const findWebhook = async (crm) => {
  const { data } = await crm('GET', '/webhooks?per_page=100');
  return data.find(({ name }) => name === WEBHOOK_NAME);
};

const addLocales = async (asOwner) => {
  const known = new Set((await asOwner('GET', '/i18n/locales')).map(({ code }) => code));
  for (const locale of LOCALES.filter(({ code }) => !known.has(code))) {
    await asOwner('POST', '/i18n/locales', { ...locale, isDefault: false });
  }
};

/** Events of the tills' past week are not sent: the webhook gets only events from now on. */
const quietly = async (crm, work) => {
  const webhook = await findWebhook(crm);
  if (webhook) await crm('PATCH', `/webhooks/${webhook.id}`, { active: false });
  await work();
  if (webhook) await crm('PATCH', `/webhooks/${webhook.id}`, { active: true });
};

/** The CRM's week and then the tills'; what an earlier start did is left as it is. */
const seedWeek = async (
  { call, crm, siteUrl, dataFolder, databaseFile, answerWith },
  state,
  keep
) => {
  const isMissing = [state.crm, state.shop].some((part) => part && !part.isThere);
  // A login is one of the few that the host allows somebody in five minutes.
  if (!isMissing || !state.login) return;
  const asOwner = await createAdminClient(call, state.login);
  const keepPart = (part) => (changes) => keep({ [part]: { ...state[part], ...changes } });
  if (state.crm && !state.crm.isThere) {
    await addLocales(asOwner);
    const { id: webhookId } = await findWebhook(crm);
    const history = openHistory(databaseFile);
    const where = { crm, webhookId, history, answerWith };
    await seedCrmWeek({ ...where, state: state.crm, keep: keepPart('crm') }).finally(history.close);
    keepPart('crm')({ isThere: true });
  }
  if (state.shop && !state.shop.isThere) {
    const admin = async (method, route, body) =>
      (await asOwner(method, `/switchboard${route}`, body))?.data;
    await quietly(crm, () =>
      seedShop({ admin, siteUrl, dataFolder, state: state.shop, keep: keepPart('shop') })
    );
    keepPart('shop')({ isThere: true });
  }
};

/**
 * Brings a site to where somebody can play: the first administrator where there is none, an API
 * token, the webhook to the receiver and, once, a few contacts and tags, or a week of a shop and its
 * CRM (`withWeek`). The ids of the created rows are kept in `<data>/playground.json`.
 * @param {{ siteUrl: string, receiverUrl: string, dataFolder: string, databaseFile: string,
 *   withWeek: boolean, answerWith: (mode: 'ok' | 'fail') => Promise<unknown>,
 *   onSecret: (secret: string) => void }} where  `databaseFile` is the site's SQLite database,
 *   `answerWith` what the receiver is to do from now on
 * @returns {Promise<{ login?: { email: string, password: string }, apiToken?: string,
 *   hasWeek: boolean, startedAt?: string }>}  `startedAt` is when the database was begun
 */
export const preparePlayground = async (where) => {
  const { siteUrl, receiverUrl, dataFolder, withWeek, onSecret } = where;
  const file = path.join(dataFolder, 'playground.json');
  const call = createClient(siteUrl);
  const state = readState(file);
  const keep = (changes) => {
    Object.assign(state, changes);
    fs.writeFileSync(file, JSON.stringify(state, null, 2), { mode: 0o600 });
  };

  const init = await call('GET', '/admin/init');
  if (!init.data.hasAdmin) {
    const begun = { seeded: false, startedAt: undefined, crm: undefined, shop: undefined };
    keep({ ...begun, ...(await registerFirstAdmin(call)) });
  }
  keep({ siteUrl, receiverUrl, startedAt: state.startedAt ?? new Date().toISOString() });
  if (!state.apiToken) return { ...state, hasWeek: false };

  const crm = (method, route, body) =>
    call(method, `/api/fw-crm/v1${route}`, { token: state.apiToken, body });
  const secret = await pointWebhookAt(crm, receiverUrl, !state.seeded);
  if (secret) onSecret(secret);
  if (!state.seeded) {
    if (!withWeek) await seedCrm(crm);
    keep({ seeded: true, ...(withWeek && { crm: {}, shop: {} }) });
  }
  await seedWeek({ ...where, call, crm }, state, keep);
  return { ...state, hasWeek: Boolean(state.crm?.isThere) };
};
