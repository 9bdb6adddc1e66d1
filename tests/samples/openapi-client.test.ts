import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { createApiToken } from '../support/accounts';
import { asOpenApi30 } from '../support/openapi-30';
import { ROOT, TYPESCRIPT } from '../support/paths';
import { isInstalled } from '../support/programs';
import { type Site, startSite } from '../support/site';
import { createTill } from '../api/pos-till';

/**
 * Clients that generators make of docs/openapi.json, each with the compiler of its language and run
 * against a site: openapi-typescript for TypeScript, OpenAPI Generator for Java.
 */

jest.setTimeout(240_000);

const FOLDER = path.join(ROOT, '.tmp', `openapi-client.${process.pid}`);
const DOCUMENT = path.join(ROOT, 'docs/openapi.json');
const FIXTURES = path.join(ROOT, 'tests/fixtures');

const run = ([program = '', ...args]: string[], env: Record<string, string> = {}) =>
  spawnSync(program, args, {
    cwd: FOLDER,
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '', ...env },
  });

const COMPILER_OPTIONS = {
  strict: true,
  skipLibCheck: true,
  target: 'es2022',
  lib: ['es2022', 'dom', 'dom.iterable'],
  module: 'esnext',
  moduleResolution: 'bundler',
  typeRoots: [path.join(ROOT, 'node_modules/@types')],
  types: ['node'],
};

const makeTypescript = (): string[] => {
  const generator = path.join(ROOT, 'node_modules/openapi-typescript/bin/cli.js');
  // What has a default may be left out of a body.
  const made = run([
    ...[process.execPath, generator, DOCUMENT],
    ...['-o', 'paths.ts', '--default-non-nullable=false'],
  ]);
  expect([made.stderr, made.status]).toEqual([expect.not.stringMatching(/error|warn/i), 0]);

  fs.copyFileSync(path.join(FIXTURES, 'openapi-client.ts'), path.join(FOLDER, 'client.mts'));
  const project = { compilerOptions: COMPILER_OPTIONS, files: ['client.mts'] };
  fs.writeFileSync(path.join(FOLDER, 'tsconfig.json'), JSON.stringify(project));
  const compiled = run([process.execPath, TYPESCRIPT, '-p', '.']);
  expect([compiled.stdout + compiled.stderr, compiled.status]).toEqual(['', 0]);
  return [process.execPath, 'client.mjs'];
};

/** The generator's last version whose package has the program in it; it reads OpenAPI 3.0. */
const JAR = path.join(
  ROOT,
  'node_modules/@openapitools/openapi-generator-cli/bin/openapi-generator.jar'
);

const javaFiles = (folder: string): string[] =>
  fs
    .readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.java'))
    .map((name) => path.join(folder, name));

/** A program that runs for seconds is done before the second compiler of the JVM pays. */
const BRIEFLY = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];

const makeJava = (): string[] => {
  const document = JSON.parse(fs.readFileSync(DOCUMENT, 'utf8'));
  fs.writeFileSync(path.join(FOLDER, 'openapi.json'), JSON.stringify(asOpenApi30(document)));
  const made = run([
    ...[
      'java',
      ...BRIEFLY,
      '-jar',
      JAR,
      'generate',
      '-i',
      'openapi.json',
      '-o',
      'java',
      '-g',
      'java',
    ],
    // The client of the JDK, and Jackson, which is in the generator as well.
    ...['--library', 'native', '-p', 'openApiNullable=false'],
    ...['--global-property', 'apis,models,supportingFiles,apiTests=false,modelTests=false'],
  ]);
  expect([made.stderr, made.status]).toEqual([expect.not.stringMatching(/exception|error/i), 0]);

  const sources = javaFiles(path.join(FOLDER, 'java/src/main'));
  const client = path.join(FIXTURES, 'OpenapiClient.java');
  const compiled = run([
    'javac',
    ...BRIEFLY.map((option) => `-J${option}`),
    '-nowarn',
    '-encoding',
    'UTF-8',
    '-d',
    'classes',
    '-cp',
    JAR,
    ...sources,
    client,
  ]);
  expect([compiled.stderr, compiled.status]).toEqual([expect.not.stringMatching(/error/), 0]);
  return ['java', ...BRIEFLY, '-cp', `classes${path.delimiter}${JAR}`, 'OpenapiClient'];
};

interface Language {
  name: string;
  /** What is there where it can be compiled. */
  compiler: string;
  /** @returns the command that runs its client */
  make(): string[];
}

const LANGUAGES: readonly Language[] = [
  { name: 'TypeScript', compiler: process.execPath, make: makeTypescript },
  { name: 'Java', compiler: 'javac', make: makeJava },
];

const isThere = ({ compiler }: Language): boolean => isInstalled(compiler, '--version');

let site: Site;
beforeAll(async () => {
  site = await startSite();
  fs.mkdirSync(FOLDER, { recursive: true });
}, 180_000);
afterAll(async () => {
  fs.rmSync(FOLDER, { recursive: true, force: true });
  await site?.stop();
}, 60_000);

it.each(LANGUAGES.filter(isThere))(
  '$name: is generated, compiles, and talks to a site',
  async ({ make }) => {
    const command = make();
    const till = await createTill(site);
    const { stdout, stderr } = run(command, {
      SITE: site.url,
      TOKEN: await createApiToken(site),
      POS_KEY: till.key,
      POS_SECRET: till.secret,
    });
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual({
      made: [201, 'client', 'string'],
      changed: [false, 'off'],
      log: 0,
      removed: 204,
      missing: 'NotFoundError',
      sold: [202, false],
      again: [200, true, true],
      told: ['client-1'],
      refused: ['schema_invalid', 'total'],
    });
  }
);
