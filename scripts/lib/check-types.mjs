import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { ROOT } from './paths.mjs';

const CONSUMER = path.join(ROOT, 'scripts/types-consumer/consumer.ts');
const COMPILER = path.join(ROOT, 'node_modules/typescript/bin/tsc');

/** `Node` is what Strapi's own TypeScript template says. */
const RESOLUTIONS = [
  { moduleResolution: 'Node', module: 'CommonJS' },
  { moduleResolution: 'Node16', module: 'Node16' },
  { moduleResolution: 'NodeNext', module: 'NodeNext' },
  { moduleResolution: 'Bundler', module: 'ESNext' },
];

/**
 * Compiles a consumer of the package's types in `project`, where the package is installed, under
 * each module resolution, strict.
 * @returns {string[]} what the compiler found, empty where all is well
 */
export const checkTypes = (project) => {
  const folder = path.join(project, 'types-consumer');
  fs.mkdirSync(folder, { recursive: true });
  fs.copyFileSync(CONSUMER, path.join(folder, 'consumer.ts'));
  return RESOLUTIONS.flatMap((resolution) => {
    const config = path.join(folder, `tsconfig.${resolution.moduleResolution}.json`);
    const compilerOptions = {
      ...resolution,
      target: 'ES2022',
      lib: ['ES2023', 'DOM', 'DOM.Iterable'],
      jsx: 'react-jsx',
      strict: true,
      skipLibCheck: true,
      esModuleInterop: true,
      noEmit: true,
      types: [],
    };
    fs.writeFileSync(config, JSON.stringify({ compilerOptions, files: ['consumer.ts'] }));
    const { status, stdout, stderr } = spawnSync(process.execPath, [COMPILER, '-p', config], {
      cwd: folder,
      encoding: 'utf8',
    });
    return status === 0 ? [] : [`${resolution.moduleResolution}: ${stdout}${stderr}`];
  });
};
