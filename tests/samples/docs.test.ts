import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { knex } from 'knex';
import prettier from 'prettier';
import ts from 'typescript';
import { optionsSchema } from '../../server/src/config/schema';
import { runCommand } from '../support/command';
import { makePluginSite } from '../support/plugin-site';
import { isInstalled } from '../support/programs';
import { readDocument, ROOT } from '../unit/docs/support/markdown';
import { compileTypeScript, firstKey, type Snippet } from './typescript-in-docs';

/** Every sample of every page: what somebody pastes has at least to compile. */

const pages = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'examples/compose/README.md',
  'examples/receivers/README.md',
  'examples/middleware/README.md',
  'examples/grafana/README.md',
  'till-client/README.md',
  ...fs
    .readdirSync(path.join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

interface Sample extends Snippet {
  language: string;
}

const samples: Sample[] = pages.flatMap((page) =>
  // Also those inside of lists, which are indented.
  [...readDocument(page).matchAll(/^ *```(\w*)\n([\s\S]*?)^ *```$/gm)].map(
    ([, language = '', code = ''], index) => ({ name: `${page} ${index + 1}`, language, code })
  )
);
const of = (...languages: string[]): Sample[] =>
  samples.filter(({ language }) => languages.includes(language));

/** An interpreter's verdict on a sample given on standard input; empty is well. */
const verdict = (command: string, args: string[], input: string): string => {
  const { status, stdout, stderr, error } = spawnSync(command, args, { input, encoding: 'utf8' });
  return status === 0 ? '' : `${error?.message ?? ''}${stdout}${stderr}`;
};

const CHECKED = ['ts', 'js', 'json', 'sh', 'php', 'python', 'yaml', 'dockerfile'];
/**
 * C# and Go are compiled by the tests of the receivers and tills, SQL runs in
 * tests/api/docs-sql.test.ts; the others are no code.
 */
const ELSEWHERE = ['csharp', 'go', 'sql', 'http', 'text'];

it('each is of a language that is checked', () => {
  const unknown = samples.filter(({ language }) => ![...CHECKED, ...ELSEWHERE].includes(language));
  expect(unknown).toEqual([]);
  for (const language of CHECKED) expect(of(language).length).toBeGreaterThan(0);
});

it.each(of('json'))('$name is JSON', ({ code }) => {
  expect(() => JSON.parse(code) as unknown).not.toThrow();
});

// Of the system's own shell, which need not be Bash.
it.each(of('sh'))('$name is a shell script', ({ code }) => {
  expect(verdict('sh', ['-n'], code)).toBe('');
});

// A machine without the language cannot say anything about it.
const withPhp = isInstalled('php', '--version') ? it : it.skip;
const withPython = isInstalled('python3', '--version') ? it : it.skip;

withPhp.each(of('php'))('$name is PHP', ({ code }) => {
  expect(verdict('php', ['-l'], `<?php\n${code}`)).toBe('');
});

withPython.each(of('python'))('$name is Python', ({ code }) => {
  expect(
    verdict('python3', ['-c', 'import sys; compile(sys.stdin.read(), "x", "exec")'], code)
  ).toBe('');
});

it.each(of('yaml'))('$name is YAML', async ({ code }) => {
  const options = await prettier.resolveConfig(path.join(ROOT, 'package.json'));
  expect(await prettier.check(code, { ...options, parser: 'yaml' })).toBe(true);
});

describe.each(of('dockerfile'))('$name', ({ code }) => {
  const lines = code.replaceAll('\\\n', ' ').split('\n').filter(Boolean);
  const stages = [...code.matchAll(/^FROM \S+ AS (\w+)$/gm)].map(([, stage]) => stage);

  it('has instructions and nothing else', () => {
    const known = /^(FROM|WORKDIR|COPY|RUN|ARG|ENV|USER|EXPOSE|CMD) \S/;
    expect(lines.filter((line) => !known.test(line))).toEqual([]);
  });

  it('copies from stages that it has', () => {
    const from = [...code.matchAll(/--from=(\w+)/g)].map(([, stage]) => stage);
    expect(from.length).toBeGreaterThan(0);
    expect(from.filter((stage) => !stages.includes(stage))).toEqual([]);
  });

  it('runs what a shell can read', () => {
    for (const line of lines.filter((one) => one.startsWith('RUN '))) {
      expect(verdict('bash', ['-n'], line.slice('RUN '.length))).toBe('');
    }
  });

  it('starts with a list, so that signals reach the process', () => {
    const command = lines.findLast((line) => line.startsWith('CMD '))!;
    expect(JSON.parse(command.slice('CMD '.length))).toEqual(expect.any(Array));
  });
});

it.each(of('js'))('$name is JavaScript', ({ code }) => {
  const text = firstKey(code)
    ? `({${code}})`
    : /^(import|export) /m.test(code)
      ? code
      : `async () => {${code}}`;
  const { diagnostics = [] } = ts.transpileModule(text, {
    reportDiagnostics: true,
    fileName: 'sample.js',
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.ESNext,
      allowJs: true,
    },
  });
  expect(diagnostics.map(({ messageText }) => messageText)).toEqual([]);
});

/** What the page says is the same in TypeScript. */
const sameInTypeScript = of('js').filter(
  ({ name, code }) =>
    name.startsWith('docs/install.md') &&
    ['switchboard', 'url', 'secrets'].includes(firstKey(code)!)
);

it('the TypeScript compiles, strict, and so does the plugin that create-plugin writes', async () => {
  expect(sameInTypeScript).toHaveLength(3);
  const site = makePluginSite();
  try {
    await runCommand(['create-plugin', 'loyalty'], { cwd: site.folder });
    const files = ['strapi-server.js', 'server/events.js', 'server/declare-events.js'].map((file) =>
      path.join(site.folder, 'src/plugins/loyalty', file)
    );
    expect(compileTypeScript([...of('ts'), ...sameInTypeScript], files)).toBe('');
  } finally {
    site.remove();
  }
}, 300_000);

const HOST_PARTS = ['secrets', 'logger', 'pool', 'url'];

/** A part of a configuration as the value that it is. */
const evaluate = (code: string): Record<string, unknown> =>
  new Function(
    'env',
    'path',
    '__dirname',
    `return ({${ts
      .transpileModule(`({${code}})`, { compilerOptions: { target: ts.ScriptTarget.ES2022 } })
      .outputText.trim()
      .replace(/^\(\{|\}\);?$/g, '')}});`
  )((name: string, value = name) => value, path, '/site/config') as Record<string, unknown>;

interface Entry {
  enabled?: boolean;
  config?: object;
}

const parts = of('ts', 'js').filter(({ code }) => firstKey(code));

it.each(parts.filter(({ code }) => !HOST_PARTS.includes(firstKey(code)!)))(
  '$name is taken as options',
  ({ code }) => {
    const part = evaluate(code);
    // The entry of the plugin has its options inside; nothing else than these two is read.
    const { enabled, config, ...beside } = (part.switchboard ?? { config: part }) as Entry;
    expect(() => optionsSchema.parse(config)).not.toThrow();
    expect([enabled ?? true, beside]).toEqual([true, {}]);
  }
);

describe('the settings of SQLite', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'switchboard-docs-'));
  afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));
  const shown = parts.filter(({ code }) => firstKey(code) === 'pool');

  it('are shown in TypeScript and JavaScript', () => {
    expect(shown.map(({ language }) => language).sort()).toEqual(['js', 'ts']);
  });

  it.each(shown)('$name does what it says', async ({ name, code }) => {
    const { pool } = evaluate(code) as { pool: object };
    const connection = knex({
      client: 'better-sqlite3',
      connection: { filename: path.join(folder, `${name.replace(/\W/g, '')}.db`) },
      useNullAsDefault: true,
      pool,
    });
    try {
      expect(await connection.raw('PRAGMA journal_mode')).toEqual([{ journal_mode: 'wal' }]);
      expect(await connection.raw('PRAGMA busy_timeout')).toEqual([{ timeout: 50 }]);
    } finally {
      await connection.destroy();
    }
  });
});
