import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { TYPESCRIPT } from '../support/paths';
import { ROOT } from '../unit/docs/support/markdown';

export interface Snippet {
  /** The document and where in it. */
  name: string;
  code: string;
}

/** What a reader of the page has around a snippet. */
const PRELUDE = `
import type { Core } from '@strapi/strapi';
import type { PayloadFilterValue, RequestFilterValue } from 'strapi-plugin-switchboard/strapi-server';
import path from 'node:path';
declare const strapi: Core.Strapi;
declare const env: Core.Config.Shared.ConfigParams['env'];
declare const customer_id: string, points: number, campaign: string, contact: string, deal: string;
declare const url: string, userAgent: string, ip: string, reason: string, at: Date, sentAt: Date;
declare const total: number, sent: number, failed: number;
declare const subject: string, from: string, text: string;
`;

/** The first key of a snippet that is a part of an object, and not a program. */
export const firstKey = (code: string): string | undefined =>
  /^(?:\s*\/\/.*\n)*\s*(\w+): /.exec(code)?.[1];

/** Parts of the host's configuration, and how the host types them. The plugin's are parsed by a test. */
const HOST_PARTS: Record<string, string> = {
  secrets: "Pick<Core.Config.Admin, 'secrets'>",
  logger: "Pick<Core.Config.Server, 'logger'>",
  pool: "Pick<Core.Config.Database<'sqlite'>['connection'], 'pool'>",
  url: "Pick<Core.Config.Server, 'url'>",
  switchboard: 'Core.Config.Plugin',
};

const isModule = (code: string): boolean => /^(import|export) /m.test(code);

const toModule = (code: string): string => {
  const key = firstKey(code);
  if (key) {
    const type = HOST_PARTS[key];
    // As in the host's template, where nothing says what type it is; and as the host wants it.
    const untyped = `${PRELUDE}\nexport const part = {${code}};`;
    if (!type) return untyped;
    return `${untyped}\nexport const typed: ${type} = part;\nexport const direct: ${type} = {${code}};`;
  }
  if (isModule(code)) return code;
  return `${PRELUDE}\nexport const run = async () => {\n${code}\n};`;
};

const COMPILER_OPTIONS = {
  noEmit: true,
  allowJs: true,
  checkJs: true,
  // A schema and an example are quoted to show their form.
  noUnusedLocals: false,
  types: ['node'],
  typeRoots: [path.join(ROOT, 'node_modules/@types')],
  paths: {
    'strapi-plugin-switchboard/strapi-server': [path.join(ROOT, 'server/src/index.ts')],
    'strapi-plugin-switchboard/till-client': [path.join(ROOT, 'till-client/index.d.ts')],
    'switchboard-till': [path.join(ROOT, 'till-client/index.d.ts')],
  },
};

const CONFIGURATION = {
  extends: path.join(ROOT, 'tsconfig.json'),
  compilerOptions: COMPILER_OPTIONS,
};

/**
 * Compiles each snippet as a module of its own, strict, against the sources.
 * @param files are compiled with them: most of the time goes into the types of the host
 * @returns what the compiler says, with the snippet's name in the file's; empty is well
 */
export const compileTypeScript = (
  snippets: readonly Snippet[],
  files: readonly string[] = []
): string => {
  // Below the repository, so that the host's types are found in its node_modules.
  const folder = path.join(ROOT, '.tmp', `docs-code-${process.pid}`);
  const modules = snippets.map(({ name, code }) => {
    const file = path.join(folder, `${name.replace(/\W+/g, '-')}.ts`);
    return { file, text: toModule(code) };
  });
  fs.mkdirSync(folder, { recursive: true });
  try {
    for (const { file, text } of modules) fs.writeFileSync(file, text);
    const project = path.join(folder, 'tsconfig.json');
    const roots = [...modules.map(({ file }) => file), ...files];
    fs.writeFileSync(project, JSON.stringify({ ...CONFIGURATION, files: roots }));
    const { stdout, stderr } = spawnSync(process.execPath, [TYPESCRIPT, '-p', project], {
      encoding: 'utf8',
    });
    return stdout + stderr;
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
};
