import fs from 'node:fs';
import path from 'node:path';
import { ADMIN_ACTIONS } from '../../../shared/contracts/permissions';
import { optionsSchema } from '../../../server/src/config/schema';
import { Hooks } from '../../../server/src/hooks';
import { FAILURE_CAUSES } from '../../../server/src/net/http-client';
import { crmRoutes } from '../../../server/src/crm/resources/routes';
import { observability } from '../../../server/src/observability';
import { routes as webhookRoutes } from '../../../server/src/webhooks/managing/routes';
import { readDocument, ROOT } from './support/markdown';

/** What the documentation lists, against what there is. */

const names = (file: string, word: string): boolean => readDocument(file).includes(`\`${word}\``);

const pages = fs
  .readdirSync(path.join(ROOT, 'docs'))
  .filter((name) => name.endsWith('.md') && name !== 'options.md')
  .map((name) => `docs/${name}`);

const cellsOf = (markdown: string): string[][] =>
  markdown
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim())
    );

describe('the options', () => {
  const defaults = optionsSchema.parse({});
  const known: [string, unknown][] = Object.entries(optionsSchema.shape).flatMap(([name, part]) => {
    const inner = (part as unknown as { unwrap?(): { shape?: object } }).unwrap?.();
    const shape = ['webhooks', 'scheduler', 'pos', 'features'].includes(name)
      ? inner?.shape
      : undefined;
    const values = defaults as unknown as Record<string, Record<string, unknown>>;
    if (!shape) return [[name, values[name]] as [string, unknown]];
    return Object.keys(shape).map((key): [string, unknown] => [
      `${name}.${key}`,
      values[name]?.[key],
    ]);
  });
  const documented = new Map(
    cellsOf(readDocument('docs/options.md'))
      .filter(([name = '']) => /^`[\w.]+`$/.test(name))
      .map(([name = '', value = '']) => [name.slice(1, -1), value])
  );

  it('are found in the schema', () => {
    expect(known.length).toBeGreaterThan(18);
  });

  it.each(known)('%s is in the table of docs/options.md with its default', (name, value) => {
    const text =
      value === undefined ? 'none' : `\`${JSON.stringify(value).replaceAll(',', ', ')}\``;
    expect(documented.get(name)).toBe(text);
  });

  it.each(known)('%s is explained on a page besides that table', (name) => {
    expect(pages.some((page) => names(page, name))).toBe(true);
  });

  it('in the table all exist', () => {
    expect([...documented.keys()].filter((name) => !known.some(([one]) => one === name))).toEqual(
      []
    );
  });
});

describe('docs/management-api.md', () => {
  const document = readDocument('docs/management-api.md');
  const table = new Set(
    cellsOf(document)
      .filter(([methods = '']) => /^`[A-Z]+`(, `[A-Z]+`)*$/.test(methods))
      .flatMap(([methods = '', path = '']) =>
        methods.split(', ').map((method) => `${method} ${path}`.replaceAll('`', ''))
      )
  );
  const served = [
    ...(webhookRoutes.crm ?? []),
    ...(observability.routes?.crm ?? []),
    ...crmRoutes,
  ].map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`);

  it.each([...new Set(served)])('has %s', (route) => {
    expect([...table]).toContain(route);
  });

  it('has no route that is not there', () => {
    expect([...table].filter((route) => !served.includes(route))).toEqual([]);
  });

  it.each(ADMIN_ACTIONS.filter((action) => /^(webhooks|journal|metrics|crm)\./.test(action)))(
    'says what needs %s',
    (action) => {
      expect(names('docs/management-api.md', action)).toBe(true);
    }
  );
});

describe('the hooks', () => {
  const registered: string[] = [];
  const strapi = {
    log: {},
    get: () => ({ set: (name: string) => registered.push(name) }),
  } as unknown as ConstructorParameters<typeof Hooks>[0];
  new Hooks(strapi).register();

  it('are seven', () => expect(registered).toHaveLength(7));

  it.each(registered)('%s has a section in docs/plugin-developers.md', (name) => {
    expect(readDocument('docs/plugin-developers.md')).toMatch(new RegExp(`^### \`${name}\`$`, 'm'));
  });
});

describe('docs/receivers.md', () => {
  it.each(FAILURE_CAUSES)('explains the cause %s', (cause) => {
    expect(names('docs/receivers.md', cause)).toBe(true);
  });
});
