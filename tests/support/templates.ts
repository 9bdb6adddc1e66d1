import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import {
  createDatabase,
  createDatabaseLike,
  type DatabaseKind,
  dropDatabase,
  statementsOf,
} from './databases';
import { ROOT, SCRATCH, SITE_DIR } from './paths';
import { filesBelow, pluginPath } from './plugin-build';
import { isOfDeadProcess } from './tidy';
import { sleep } from './wait';

/**
 * What the first boot of a site leaves, with the first administrator and an API token. Making a
 * hundred tables costs twice the processor time of a boot that finds them, so it is done once for
 * each database and each state of the plugin, and a test's site begins with a copy.
 */
interface Template {
  databaseName: string;
  apiToken: string;
  /** JWT of the first administrator, whose session is in the database. */
  adminToken: string;
  /** MySQL knows no copy of a database: what makes one. */
  statements: string[];
}

const FOLDER = path.join(SCRATCH, 'templates');
const UNUSED_MS = 86_400_000;

let key: string | undefined;

/** Of everything that a first boot depends on; two checkouts share their servers but no template. */
const stateOfSources = (): string => {
  if (key) return key;
  const plugin = pluginPath();
  const built = path.join(plugin, 'dist/server');
  const files = [...(fs.existsSync(built) ? filesBelow(built) : []), ...filesBelow(SITE_DIR)]
    .filter((file) => /\.(js|json)$/.test(file) && !file.includes(`${path.sep}.`))
    .sort();
  const hash = crypto.createHash('sha256').update(`${ROOT}\0${plugin}\0`);
  for (const file of files) hash.update(file).update('\0').update(fs.readFileSync(file));
  hash.update(fs.readFileSync(require.resolve('@strapi/strapi/package.json')));
  key = hash.digest('hex').slice(0, 12);
  return key;
};

const noteOf = (kind: DatabaseKind): string =>
  path.join(FOLDER, `${kind}-${stateOfSources()}.json`);

const read = (file: string): Template | null => {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8')) as Template;
  } catch {
    return null;
  }
};

const dropUnused = async (kind: DatabaseKind): Promise<void> => {
  for (const name of fs.readdirSync(FOLDER)) {
    const file = path.join(FOLDER, name);
    const isNote = name.startsWith(`${kind}-`) && name.endsWith('.json');
    if (!isNote || Date.now() - fs.statSync(file).mtimeMs < UNUSED_MS) continue;
    const old = read(file);
    fs.rmSync(file);
    if (!old) continue;
    if (kind === 'sqlite') fs.rmSync(old.databaseName, { force: true });
    else await dropDatabase(kind, old.databaseName);
  }
};

type Tokens = Pick<Template, 'apiToken' | 'adminToken'>;

/** Boots a site on the empty database and ends it. */
type FirstBoot = (databaseName: string) => Promise<Tokens>;

const make = async (kind: DatabaseKind, firstBoot: FirstBoot): Promise<void> => {
  await dropUnused(kind);
  const name = `swb_template_${stateOfSources()}`;
  const databaseName =
    kind === 'sqlite' ? path.join(FOLDER, `${name}.db`) : await createDatabase(kind, name);
  if (kind === 'sqlite') fs.rmSync(databaseName, { force: true });
  const tokens = await firstBoot(databaseName);
  const statements = await statementsOf(kind, databaseName);
  fs.writeFileSync(noteOf(kind), JSON.stringify({ databaseName, ...tokens, statements }));
};

/** How long a test file may need the administrator's session at most. */
const SESSION_LEFT_MS = 3 * 3_600_000;

/** The administrator's JWT, unless it ends before a file that begins now. */
const stillValid = (jwt: string): string | undefined => {
  const [, payload = ''] = jwt.split('.');
  const { exp = 0 } = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as {
    exp?: number;
  };
  return exp * 1000 - Date.now() > SESSION_LEFT_MS ? jwt : undefined;
};

/** Who holds a lock; nobody where it was given back just now. */
const ownerOf = (file: string): string => {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return '';
  }
};

/** Runs `work` while no other test process does; what a dead process locked is free. */
export const locked = async <T>(file: string, work: () => Promise<T>): Promise<T> => {
  for (;;) {
    try {
      fs.writeFileSync(file, `${process.pid}`, { flag: 'wx' });
      break;
    } catch {
      if (isOfDeadProcess(ownerOf(file))) fs.rmSync(file, { force: true });
      await sleep(100);
    }
  }
  try {
    return await work();
  } finally {
    fs.rmSync(file, { force: true });
  }
};

/**
 * Makes a database for a site that looks like one that booted before.
 * @param file where a SQLite database is put
 * @returns the database's name, the key of a full-access token, and the first administrator's JWT
 * as long as it is valid for hours: signing in is a tenth of a boot
 */
export const createFromTemplate = async (
  kind: DatabaseKind,
  file: string,
  firstBoot: FirstBoot
): Promise<{ databaseName: string; apiToken: string; adminToken: string | undefined }> => {
  fs.mkdirSync(FOLDER, { recursive: true });
  const note = noteOf(kind);
  return locked(`${note}.lock`, async () => {
    for (let tries = 0; ; tries += 1) {
      const template = read(note);
      try {
        if (!template) throw new Error('There is no template yet.');
        const databaseName = await createDatabaseLike(kind, template, file);
        fs.utimesSync(note, new Date(), new Date());
        const { apiToken, adminToken } = template;
        return { databaseName, apiToken, adminToken: stillValid(adminToken) };
      } catch (error) {
        // None yet, or its server lost it.
        if (tries > 0) throw error;
        await make(kind, firstBoot);
      }
    }
  });
};
