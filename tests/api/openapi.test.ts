import { startSite, type Site } from '../support/site';

/** The host documents our routes from their zod schemas; a validator that is not ours reads it. */

jest.setTimeout(120_000);

interface Operation {
  requestBody?: unknown;
  responses: Record<string, unknown>;
  parameters?: { name: string; in: string }[];
}

let site: Site;
let document: { paths: Record<string, Record<string, Operation>> };

beforeAll(async () => {
  site = await startSite();
  document = await site.evaluate(({ strapi, require }) => {
    const { generate } = require('@strapi/openapi');
    return generate(strapi, { type: 'content-api' }).document;
  });
});

afterAll(() => site?.stop());

test('the OpenAPI document of the content API is valid', async () => {
  const { Validator } = await import('@seriousme/openapi-schema-validator');
  const result = await new Validator().validate(document as never);
  expect(result.errors ?? []).toEqual([]);
  expect(result.valid).toBe(true);
});

const operation = (method: string, path: string): Operation | undefined =>
  Object.entries(document.paths).find(([key]) => key.endsWith(path))?.[1][method];

test.each([
  ['get', '/fw-crm/v1/webhooks'],
  ['post', '/fw-crm/v1/webhooks'],
  ['get', '/fw-crm/v1/webhooks/events'],
  ['get', '/fw-crm/v1/webhooks/{id}'],
  ['put', '/fw-crm/v1/webhooks/{id}'],
  ['patch', '/fw-crm/v1/webhooks/{id}'],
  ['delete', '/fw-crm/v1/webhooks/{id}'],
  ['post', '/fw-crm/v1/webhooks/{id}/test'],
  ['get', '/fw-crm/v1/webhooks/{id}/secret'],
  ['post', '/fw-crm/v1/webhooks/{id}/secret'],
  ['get', '/fw-crm/v1/webhooks/{id}/deliveries'],
  ['get', '/fw-crm/v1/webhook-deliveries'],
  ['get', '/fw-crm/v1/webhook-deliveries/causes'],
  ['get', '/fw-crm/v1/webhook-deliveries/{id}'],
  ['post', '/fw-crm/v1/webhook-deliveries/{id}/retry'],
  ['get', '/fw-crm/v1/webhooks/journal'],
  ['post', '/fw-crm/v1/webhooks/{id}/replay'],
  ['get', '/fw-crm/v1/metrics'],
  ['get', '/fw-crm/v1/webhook-recoveries'],
  ['post', '/fw-crm/v1/webhook-recoveries'],
  ['post', '/fw-crm/v1/webhook-recoveries/preview'],
  ['get', '/fw-crm/v1/webhook-recoveries/{id}'],
  ['post', '/fw-crm/v1/webhook-recoveries/{id}/pause'],
  ['post', '/fw-crm/v1/webhook-recoveries/{id}/resume'],
  ['post', '/fw-crm/v1/webhook-recoveries/{id}/cancel'],
  ['post', '/fw-crm/v1/webhook-deliveries/{id}/skip'],
  ['post', '/fw-crm/v1/webhook-deliveries/{id}/release'],
])('%s %s is documented with its answer', (method, path) => {
  const found = operation(method, path);
  expect(found).toBeDefined();
  expect(JSON.stringify(found?.responses)).toMatch(/schema/);
  if (method === 'post' && path.endsWith('/webhooks')) {
    expect(JSON.stringify(found?.requestBody)).toMatch(/events/);
  }
});

test('the log documents its filters', () => {
  const names = operation('get', '/fw-crm/v1/webhooks/{id}/deliveries')?.parameters?.map(
    ({ name }) => name
  );
  expect(names).toEqual(expect.arrayContaining(['id', 'page', 'per_page', 'status', 'state', 'q']));
  const all = operation('get', '/fw-crm/v1/webhook-deliveries')?.parameters;
  expect(all?.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['webhook', 'subject_id', 'from', 'to', 'limit', 'cursor'])
  );
});
