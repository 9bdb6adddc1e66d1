import fs from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import { ROOT } from './paths.mjs';

const CONSUMER = path.join(ROOT, 'scripts/types-consumer/consumer.ts');

/** `Node` is what Strapi's own TypeScript template says. */
const RESOLUTIONS = [
  { moduleResolution: 'Node', module: 'CommonJS' },
  { moduleResolution: 'Node16', module: 'Node16' },
  { moduleResolution: 'NodeNext', module: 'NodeNext' },
  { moduleResolution: 'Bundler', module: 'ESNext' },
];

const OPTIONS = {
  target: 'ES2022',
  lib: ['ES2023', 'DOM', 'DOM.Iterable'],
  jsx: 'react-jsx',
  strict: true,
  skipLibCheck: true,
  esModuleInterop: true,
  noEmit: true,
  types: [],
};

/** A compiler's host that parses a file once for all compilations which read it in the same way. */
const sharing = (options, parsed) => {
  const host = ts.createCompilerHost(options);
  const getSourceFile = (name, how, ...more) => {
    const key = JSON.stringify([name, how]);
    if (!parsed.has(key)) parsed.set(key, host.getSourceFile(name, how, ...more));
    return parsed.get(key);
  };
  return { ...host, getSourceFile };
};

/** Errors of the compiler in the files that a configuration names. */
const compile = (config, parsed) => {
  const { options, fileNames, errors } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(config, ts.sys.readFile).config,
    ts.sys,
    path.dirname(config),
    undefined,
    config
  );
  const program = ts.createProgram({
    rootNames: fileNames,
    options,
    host: sharing(options, parsed),
  });
  return ts.formatDiagnostics([...errors, ...ts.getPreEmitDiagnostics(program)], {
    getCurrentDirectory: () => path.dirname(config),
    getCanonicalFileName: (name) => name,
    getNewLine: () => '\n',
  });
};

/**
 * Compiles a consumer of the package's types in `project`, where the package is installed, under
 * each module resolution, strict.
 * @returns {string[]} errors of the compiler, empty if all is well
 */
export const checkTypes = (project) => {
  const folder = path.join(project, 'types-consumer');
  fs.mkdirSync(folder, { recursive: true });
  fs.copyFileSync(CONSUMER, path.join(folder, 'consumer.ts'));
  const parsed = new Map();
  return RESOLUTIONS.flatMap((resolution) => {
    const config = path.join(folder, `tsconfig.${resolution.moduleResolution}.json`);
    const compilerOptions = { ...resolution, ...OPTIONS };
    fs.writeFileSync(config, JSON.stringify({ compilerOptions, files: ['consumer.ts'] }));
    const faults = compile(config, parsed);
    return faults === '' ? [] : [`${resolution.moduleResolution}: ${faults}`];
  });
};
