import { createConfig, lintFromString } from '@redocly/openapi-core';
import Ajv2020 from 'ajv/dist/2020';
import { spawnSync } from 'node:child_process';
import server from '../../../server/src';
import { PUBLISHED_SCHEMAS } from '../../../server/src/pos/rules/schemas';
import { ERROR_STATUS } from '../../../server/src/pos/rules/records';
import { readDocument, ROOT } from './support/markdown';

/** docs/openapi.json, as tools read it that know nothing of the plugin. */

jest.setTimeout(240_000);

interface Operation {
  operationId: string;
  summary: string;
  security: Record<string, string[]>[];
  requestBody?: { content: Record<string, { schema?: object }> };
  responses: Record<string, { $ref?: string; description?: string }>;
}

interface Draft {
  info?: unknown;
  paths: Record<string, Record<string, Operation>>;
  components: {
    schemas: Record<string, { properties?: Record<string, unknown>; examples?: unknown[] }>;
    responses: Record<string, { description: string }>;
    securitySchemes: Record<string, { type: string; in?: string; name?: string }>;
  };
}

const draft = (): Draft => JSON.parse(readDocument('docs/openapi.json')) as Draft;
const document = draft();

const VALIDATORS: Record<string, (source: Draft) => Promise<string[]>> = {
  '@seriousme/openapi-schema-validator': async (source) => {
    const { Validator } = await import('@seriousme/openapi-schema-validator');
    const { valid, errors } = await new Validator().validate(source as never);
    return valid ? [] : [JSON.stringify(errors)];
  },
  '@redocly/openapi-core': async (source) => {
    const problems = await lintFromString({
      source: JSON.stringify(source),
      absoluteRef: 'openapi.json',
      config: await createConfig({ extends: ['recommended'] }),
    });
    return problems.map(
      ({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer}: ${message}`
    );
  },
};

describe.each(Object.entries(VALIDATORS))('%s', (_name, faultsOf) => {
  it('reads it without a fault', async () => {
    expect(await faultsOf(document)).toEqual([]);
  });

  it.each<[string, (broken: Draft) => void]>([
    ['has no info', (broken) => delete broken.info],
    ['points at a schema that there is not', (broken) => delete broken.components.schemas.Accepted],
    [
      'has a parameter in a place that there is not',
      (broken) =>
        Object.assign(broken.paths['/api/service-pos/v1/ping']!.get!, {
          parameters: [{ name: 'x', in: 'body', schema: {} }],
        }),
    ],
  ])('refuses a copy that %s', async (_what, breakIt) => {
    const broken = draft();
    breakIt(broken);
    expect(await faultsOf(broken)).not.toEqual([]);
  });
});

it('is fresh', () => {
  const { status, stderr } = spawnSync(
    process.execPath,
    ['scripts/generate-openapi.mjs', '--check'],
    { cwd: ROOT, encoding: 'utf8', env: { ...process.env, NODE_OPTIONS: '' } }
  );
  expect([stderr, status]).toEqual(['', 0]);
});

const documented = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({
    name: `${method.toUpperCase()} ${path}`,
    operation,
  }))
);

it('has every route of the code and no other', () => {
  const { crm, pos } = server.routes;
  const routes = [crm, pos].flatMap(({ prefix, routes: all }) =>
    all.map(({ method, path }) => `${method} /api${prefix}${path.replace(/:(\w+)/g, '{$1}')}`)
  );
  expect(routes.length).toBeGreaterThan(70);
  expect(documented.map(({ name }) => name).sort()).toEqual(routes.sort());
});

it('calls every operation by a name of its own, and says in words what it does', () => {
  const ids = documented.map(({ operation }) => operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
  // Words for a new route go into scripts/lib/openapi/management.mjs.
  const wordless = documented.filter(({ operation }) => /^[\w-]+\.\w+$/.test(operation.summary));
  expect(wordless.map(({ name }) => name)).toEqual([]);
});

it('has an answer that is a success for each, and what else may come', () => {
  for (const { name, operation } of documented) {
    const statuses = Object.keys(operation.responses);
    expect([name, statuses.some((status) => status.startsWith('2'))]).toEqual([name, true]);
    expect([name, statuses.some((status) => status.startsWith('4'))]).toEqual([name, true]);
  }
});

it('names every code that a till can be answered', () => {
  for (const [code, status] of Object.entries(ERROR_STATUS)) {
    expect(document.components.responses[`Till${status}`]?.description).toContain(`\`${code}\``);
  }
});

it('signs every post of a till', () => {
  const { securitySchemes } = document.components;
  const headers = ['posKey', 'posTimestamp', 'posSignature'].map((name) => securitySchemes[name]);
  expect(headers.map((scheme) => [scheme?.type, scheme?.in, scheme?.name])).toEqual([
    ['apiKey', 'header', 'X-POS-Key'],
    ['apiKey', 'header', 'X-POS-Timestamp'],
    ['apiKey', 'header', 'X-POS-Signature'],
  ]);
  const posts = documented.filter(({ name }) => name.startsWith('POST /api/service-pos/'));
  for (const { name, operation } of posts) {
    const needed = operation.security.map((one) => Object.keys(one).sort());
    expect([name, needed]).toEqual([name, [['posKey', 'posSignature', 'posTimestamp']]]);
  }
  expect(document.paths['/api/service-pos/v1/ping']?.get?.security).toEqual([{ posKey: [] }]);
});

const ajv = new Ajv2020({ strict: false, validateFormats: false });
ajv.addSchema(document, 'document');

it.each(Object.keys(PUBLISHED_SCHEMAS))(
  'takes the examples of a %s, and not half of one',
  (kind) => {
    const name = kind.replace(/^./, (first) => first.toUpperCase());
    const validate = ajv.compile({ $ref: `document#/components/schemas/${name}` });
    const examples = document.components.schemas[name]?.examples ?? [];
    expect(examples.length).toBeGreaterThan(0);
    for (const example of examples) {
      expect([example, validate(example)]).toEqual([example, true]);
      const half = Object.fromEntries(Object.entries(example as object).slice(1));
      expect(validate(half)).toBe(false);
    }
  }
);
