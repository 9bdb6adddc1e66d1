import fs from 'node:fs';
import path from 'node:path';
import Ajv2020 from 'ajv/dist/2020';
import { describeEach, anyDatabase } from '../support/databases';
import { type Answer, send } from '../support/http';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import { allProcessed, createItem, createTill, isoAgo, otherSecret, saleBody } from './pos-till';

/** What a site answers is what docs/openapi.json says, route by route. */

jest.setTimeout(180_000);

const FILE = path.resolve(__dirname, '../../docs/openapi.json');

interface Node {
  [keyword: string]: unknown;
}

interface Document extends Node {
  paths: Record<string, Record<string, { responses: Record<string, Node> }>>;
  components: { schemas: Record<string, Node>; responses: Record<string, Node> };
}

/** Schemas that stand beside others for one object: what they do not name is named there. */
const PARTS = ['Accepted', 'TillError', 'HostError', 'JsonSchema'];

/** No answer has a key that the document does not name. */
const close = (node: unknown): void => {
  if (typeof node !== 'object' || node === null) return;
  const schema = node as Node;
  for (const value of Object.values(schema)) close(value);
  if (schema.type !== 'object' || typeof schema.properties !== 'object') return;
  if (!('additionalProperties' in schema) && !('anyOf' in schema)) {
    schema.additionalProperties = false;
  }
};

const readDocument = (): Document => {
  const document = JSON.parse(fs.readFileSync(FILE, 'utf8')) as Document;
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    if (!PARTS.includes(name)) close(schema);
  }
  for (const item of Object.values(document.paths)) {
    for (const { responses } of Object.values(item)) close(responses);
  }
  return document;
};

const document = readDocument();
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
ajv.addSchema(document, 'document');

const pointer = (...parts: string[]): string =>
  parts.map((part) => `/${part.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

const covered = new Set<string>();

/** Holds an answer against what the document says of this status. */
const hold = (method: string, template: string, answer: Answer<unknown>): void => {
  const name = `${method} ${template}`;
  const operation = document.paths[template]?.[method.toLowerCase()];
  if (!operation) throw new Error(`${name} is not documented`);
  const status = String(answer.status);
  const response = operation.responses[status];
  if (!response) throw new Error(`${name} answered ${status}, which is not documented`);
  const at =
    typeof response.$ref === 'string'
      ? response.$ref.slice(1)
      : pointer('paths', template, method.toLowerCase(), 'responses', status);
  if (Object.keys(response.content ?? {}).includes('text/plain')) {
    expect([name, typeof answer.body]).toEqual([name, 'string']);
    covered.add(name);
    return;
  }
  if (answer.status === 204) {
    expect([name, answer.text]).toEqual([name, '']);
    covered.add(name);
    return;
  }
  const validate = ajv.compile({ $ref: `document#${at}/content/application~1json/schema` });
  validate(answer.body);
  const faults = validate.errors?.map((error) => `${error.instancePath} ${error.message}`) ?? [];
  expect([name, status, faults]).toEqual([name, status, []]);
  if (answer.status < 300) covered.add(name);
};

/* eslint-disable @typescript-eslint/no-explicit-any -- answers are what the test is about */
type Json = any;
/* eslint-enable @typescript-eslint/no-explicit-any */

const CRM = '/api/fw-crm/v1';
const POS = '/api/service-pos/v1';

it.each([
  ['a key that is not documented', { ok: true, more: 1 }, 200],
  ['a wrong type', { server_time: 'noon' }, 200],
  ['a status that is not documented', {}, 418],
])('an answer with %s is noticed', (_what, more, status) => {
  const ping = { ok: true, connection: 'c', mode: 'test', schema: 'v1', server_time: 1 };
  const answered = (body: object, code: number) =>
    hold('GET', `${POS}/ping`, { status: code, body, headers: {}, text: '', durationMs: 0 });
  expect(() => answered(ping, 200)).not.toThrow();
  expect(() => answered({ ...ping, ...more }, status)).toThrow();
});

describeEach(anyDatabase(), 'docs/openapi.json', (database) => {
  let site: Site;
  let receiver: Receiver;

  beforeAll(async () => {
    covered.clear();
    receiver = await startReceiver();
    site = await startSite({
      database,
      options: {
        webhooks: { journalDays: 1 },
        pos: { ratePerMinute: 10_000, failedAuthPerMinute: 10_000 },
      },
    });
  }, 180_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);

  const call = async (
    method: string,
    template: string,
    { params = {}, query = '', body }: { params?: Json; query?: string; body?: unknown } = {}
  ): Promise<Json> => {
    const filled = template.replace(/\{(\w+)\}/g, (_match, name: string) => String(params[name]));
    const answer = await site.request(method, `${CRM}${filled}${query}`, { body });
    hold(method, `${CRM}${template}`, answer);
    return answer.body;
  };

  it('says what the webhooks’ routes answer', async () => {
    const body = { name: 'r', url: receiver.url, events: ['contact.created'] };
    const { id } = await call('POST', '/webhooks', { body });
    const params = { id };
    await call('GET', '/webhooks');
    await call('GET', '/webhooks/events');
    await call('GET', '/webhooks/{id}', { params });
    await call('PUT', '/webhooks/{id}', { params, body: { name: 's' } });
    await call('PATCH', '/webhooks/{id}', { params, body: { payload: 'full' } });
    await call('POST', '/webhooks/{id}/test', { params, body: {} });
    await call('GET', '/webhooks/{id}/secret', { params });
    await call('POST', '/webhooks/{id}/secret', { params, body: { overlap_hours: 1 } });
    const filter = { type: 'object' };
    await call('POST', '/webhooks/{id}/filter/preview', { params, body: { filter } });
    await call('POST', '/contacts', { body: { email: 'one@example.test' } });
    await receiver.waitFor(2, 60_000);
    const { data } = await call('GET', '/webhooks/{id}/deliveries', { params });
    expect(data.length).toBeGreaterThan(1);
    await call('GET', '/webhook-deliveries', { query: '?limit=1&q=example' });
    receiver.respond({ status: 500 });
    await call('POST', '/contacts', { body: { email: 'two@example.test' } });
    await receiver.waitFor(3, 60_000);
    await call('GET', '/webhook-deliveries/causes');
    const delivery = { id: data[0].id };
    await call('GET', '/webhook-deliveries/{id}', { params: delivery });
    await call('POST', '/webhook-deliveries/{id}/retry', { params: delivery });
    await call('POST', '/webhooks', { body: { name: '' } });
    await call('GET', '/webhooks/journal');
    await call('GET', '/metrics');
    const range = { from: '2020-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' };
    await call('POST', '/webhooks/{id}/replay', { params, body: { ...range, dry_run: true } });
    await call('POST', '/webhooks/{id}/replay', { params, body: range });
    const failing = await waitFor(async () => {
      const found = await call('GET', '/webhook-deliveries', { query: '?state=failing' });
      return found.data[0] as { id: number } | undefined;
    }, 60_000);
    // What is off queues nothing of a recovery, so that one goes on for as long as it is off.
    await call('PATCH', '/webhooks/{id}', { params, body: { active: false } });
    const chosen = { filter: { webhook: id } };
    await call('POST', '/webhook-recoveries/preview', { body: chosen });
    await call('POST', '/webhook-recoveries', { body: {} });
    const recovery = { id: (await call('POST', '/webhook-recoveries', { body: chosen })).id };
    await call('GET', '/webhook-recoveries');
    await call('GET', '/webhook-recoveries/{id}', { params: recovery });
    for (const change of ['pause', 'resume', 'cancel', 'pause']) {
      await call('POST', `/webhook-recoveries/{id}/${change}`, { params: recovery });
    }
    for (const change of ['release', 'skip', 'skip']) {
      await call('POST', `/webhook-deliveries/{id}/${change}`, { params: { id: failing.id } });
    }
    await call('DELETE', '/webhooks/{id}', { params });
    await call('GET', '/webhooks/{id}', { params });
    const nobody = await send({ method: 'GET', url: `${site.url}${CRM}/webhooks` });
    expect([401, 403]).toContain(nobody.status);
    hold('GET', `${CRM}/webhooks`, nobody);
  });

  it('says what the CRM’s routes answer', async () => {
    const inputs: Record<string, object> = {
      contacts: { email: 'three@example.test', first_name: 'Ada', address: { city: 'Ulm' } },
      tags: { name: 'Tag' },
      companies: { name: 'Firm', employees: 3 },
      deals: { title: 'Deal', value: 10.5, currency: 'EUR' },
      'deal-stages': { name: 'New', position: 1 },
      tasks: { title: 'Call', type: 'call', due_at: '2030-01-01T10:00:00.000+00:00' },
      campaigns: { title: 'Spring', subject: 'Offer' },
    };
    const ids: Record<string, string> = {};
    for (const [name, body] of Object.entries(inputs)) {
      const { id } = await call('POST', `/${name}`, { body });
      ids[name] = id;
      await call('GET', `/${name}`);
      await call('GET', `/${name}/{id}`, { params: { id } });
      for (const method of ['PUT', 'PATCH']) {
        await call(method, `/${name}/{id}`, { params: { id }, body });
      }
      await call('GET', `/${name}/{id}`, { params: { id: 'nobody' } });
    }
    const params = { id: ids.contacts, tag_id: ids.tags };
    await call('GET', '/contacts/{id}/purchases', { params });
    await call('POST', '/contacts/{id}/tags/{tag_id}', { params });
    await call('DELETE', '/contacts/{id}/tags/{tag_id}', { params });
    for (const [name, id] of Object.entries(ids)) {
      await call('DELETE', `/${name}/{id}`, { params: { id } });
    }
  });

  it('says what tills are answered', async () => {
    await createItem(site, 'DOCUMENTED', 10, { name: 'Documented' });
    const scopes = ['sale:write', 'refund:write', 'inventory:write', 'stock:read', 'closing:write'];
    const till = await createTill(site, { scopes });
    const post = async (kind: string, body: unknown, changes = {}): Promise<Json> => {
      const answer = await till.send(kind, body, changes);
      hold('POST', `${POS}/${kind}`, answer);
      return answer.body;
    };
    const get = async (route: string, headers = {}): Promise<void> => {
      const url = `${site.url}${POS}${route}`;
      hold('GET', `${POS}${route}`, await send({ method: 'GET', url, headers }));
    };
    await get('/ping', { 'x-pos-key': till.key });
    await get('/ping');
    for (const kind of ['sale', 'refund', 'inventory', 'batch', 'closing']) {
      await get(`/schema/${kind}`);
    }

    const sale = saleBody([['DOCUMENTED', 2]], { external_id: 'd-1' });
    await post('sale', sale);
    await post('sale', { ...sale, total: 1 });
    await post('sale', { ...sale, total: 'much' });
    await post('sale', sale, { secret: otherSecret() });
    await post('sale', sale, { timestamp: 1 });
    await post('sale', sale, { headers: { 'content-encoding': 'gzip' } });
    await post('sale', Buffer.alloc(300_000, 0x20));
    const refund = { external_id: 'd-2', sale_external_id: 'd-1', occurred_at: isoAgo(0) };
    await post('refund', refund);
    const countOf = (id: string, seconds: number) => ({
      external_id: id,
      occurred_at: isoAgo(seconds),
      mode: 'absolute',
      counts: [{ sku: 'DOCUMENTED', quantity: 7 }],
    });
    await post('inventory', countOf('d-3', 5));
    expect(await post('inventory', countOf('d-4', 60))).toMatchObject({ code: 'stale_count' });
    await post('batch', {
      records: [
        { kind: 'sale', body: saleBody([['NOBODY', 1]]) },
        { kind: 'sale', body: { external_id: 'd-5' } },
        { kind: 'inventory', body: countOf('d-6', 60) },
      ],
    });
    await post('batch', { records: [] });
    await post('validate', { kind: 'sale', body: saleBody([['NOBODY', 1]]) });
    await post('validate', { kind: 'sale', body: saleBody([['DOCUMENTED', 1]]) });
    await allProcessed(site);
    await post('status', { external_ids: ['d-1', 'never'] });
    const closing = {
      external_id: 'd-7',
      occurred_at: isoAgo(0),
      from: isoAgo(3600),
      to: isoAgo(-60),
      totals: [],
      external_ids: ['d-1', 'never'],
    };
    await post('closing', closing);
    await post('closing', closing);
    await post('closing', { ...closing, totals: 'none' });
    await post('catalogue', { limit: 10 });
    await post('catalogue', { cursor: 'nonsense' });
    const limited = await createTill(site, { scopes: ['sale:write'] });
    hold('POST', `${POS}/refund`, await limited.send('refund', refund));
    hold('POST', `${POS}/catalogue`, await limited.send('catalogue', {}));
  });

  it('has had every operation answered with success, but those of mail providers', () => {
    const all = Object.entries(document.paths).flatMap(([template, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${template}`)
    );
    const open = all.filter((name) => !covered.has(name) && !name.startsWith(`POST ${CRM}/email/`));
    expect(open).toEqual([]);
  });
});
