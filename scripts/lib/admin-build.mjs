import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { PLAYGROUND, ROOT } from './paths.mjs';
import { mustRun } from './run.mjs';

const STAMP = path.join(PLAYGROUND, 'dist/.built-from');

const filesBelow = (place) => {
  const stat = fs.statSync(place, { throwIfNoEntry: false });
  if (!stat) return [];
  if (!stat.isDirectory()) return [place];
  return fs
    .readdirSync(place)
    .sort()
    .flatMap((name) => filesBelow(path.join(place, name)));
};

/** Sources of the panel: the plugin's admin half, the site's files, the host's version. */
const fingerprint = () => {
  const hash = crypto.createHash('sha256');
  const places = [
    path.join(ROOT, 'dist/admin'),
    path.join(PLAYGROUND, 'config'),
    path.join(PLAYGROUND, 'src'),
    path.join(PLAYGROUND, 'package.json'),
    path.join(PLAYGROUND, 'tsconfig.json'),
    path.join(ROOT, 'package-lock.json'),
  ];
  for (const file of places.flatMap(filesBelow)) {
    hash.update(path.relative(ROOT, file)).update('\0').update(fs.readFileSync(file)).update('\0');
  }
  return hash.digest('hex');
};

/** Builds the playground (its TypeScript and its admin panel) where something changed. */
export const buildPlaygroundWhenStale = async () => {
  const wanted = fingerprint();
  const built = fs.existsSync(STAMP) ? fs.readFileSync(STAMP, 'utf8') : '';
  if (built === wanted && fs.existsSync(path.join(PLAYGROUND, 'dist/build/index.html'))) return;
  console.log('Building the admin panel of the playground (half a minute or so) …');
  fs.rmSync(path.join(PLAYGROUND, 'dist'), { recursive: true, force: true });
  await mustRun(
    'Building the admin panel',
    process.execPath,
    [path.join(ROOT, 'node_modules/@strapi/strapi/bin/strapi.js'), 'build'],
    {
      cwd: PLAYGROUND,
      env: { ...process.env, NODE_ENV: 'production', STRAPI_TELEMETRY_DISABLED: 'true' },
    }
  );
  fs.writeFileSync(STAMP, wanted);
};
