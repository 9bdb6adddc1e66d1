// Installs the packed tarball into a new Strapi project outside the repository, builds its admin
// panel, compiles a consumer of its types under each module resolution, and lets the main job run
// there: a contact is created, a signed event arrives.
// Usage: node scripts/check-package.mjs [--keep]
import { execFileSync, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkTypes } from './lib/check-types.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const project = fs.mkdtempSync(path.join(os.tmpdir(), 'switchboard-project-'));
const own = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'));
const strapiVersion = own.devDependencies['@strapi/strapi'];

const say = (text) => console.log(`[package] ${text}`);
const run = (command, args, cwd = project) =>
  execFileSync(command, args, {
    cwd,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_ENV: 'production', STRAPI_TELEMETRY_DISABLED: 'true' },
    maxBuffer: 64 * 1024 * 1024,
  }).toString();

const write = (file, text) => {
  const target = path.join(project, file);
  fs.mkdirSync(path.dirname(target), { recursive: true });
  fs.writeFileSync(target, text);
};

const pack = () => {
  const output = run(
    'npm',
    ['pack', '--ignore-scripts', '--json', '--pack-destination', project],
    root
  );
  return JSON.parse(output.slice(output.indexOf('[')))[0].filename;
};

const makeProject = (tarball) => {
  write(
    'package.json',
    JSON.stringify({
      name: 'a-site',
      private: true,
      version: '1.0.0',
      dependencies: {
        '@strapi/strapi': strapiVersion,
        'better-sqlite3': own.devDependencies['better-sqlite3'],
        react: '^18.0.0',
        'react-dom': '^18.0.0',
        'react-router-dom': '^6.0.0',
        'styled-components': '^6.0.0',
        [own.name]: `file:./${tarball}`,
      },
      strapi: { uuid: 'switchboard-package-check' },
    })
  );
  const secret = (name) => `${name}: 'check-${name}-0123456789abcdef'`;
  write(
    'config/admin.js',
    `module.exports = { auth: { ${secret('secret')} }, apiToken: { ${secret('salt')} }, transfer: { token: { ${secret('salt')} } }, secrets: { ${secret('encryptionKey')} } };`
  );
  write(
    'config/server.js',
    `module.exports = ({ env }) => ({ host: '127.0.0.1', port: env.int('PORT'), app: { keys: ['a', 'b'] } });`
  );
  write(
    'config/database.js',
    `const path = require('node:path'); module.exports = { connection: { client: 'sqlite', connection: { filename: path.join(__dirname, '..', 'data.db') }, useNullAsDefault: true } };`
  );
  write(
    'config/plugins.js',
    `module.exports = { switchboard: { enabled: true, config: { webhooks: { allowPrivateNetworks: ['127.0.0.0/8'] } } } };`
  );
  write(
    'config/middlewares.js',
    `module.exports = ['strapi::logger', 'strapi::errors', 'strapi::security', 'strapi::cors', 'strapi::poweredBy', 'strapi::query', 'strapi::body', 'strapi::session', 'strapi::favicon', 'strapi::public'];`
  );
  write('src/index.js', 'module.exports = {};');
  fs.mkdirSync(path.join(project, 'public/uploads'), { recursive: true });
  fs.mkdirSync(path.join(project, 'src/api'), { recursive: true });
};

const freePort = () =>
  new Promise((resolve) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

const post = async (url, body, token) => {
  const answer = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(token && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(body),
  });
  const parsed = await answer.json();
  if (!answer.ok) throw new Error(`POST ${url}: ${answer.status} ${JSON.stringify(parsed)}`);
  return parsed;
};

const waitFor = async (what, condition, milliseconds = 60_000) => {
  const until = Date.now() + milliseconds;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > until) throw new Error(`${what} did not happen within ${milliseconds} ms`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
};

const useSite = async (url, receiverUrl, received) => {
  await waitFor('the start of the site', () =>
    fetch(`${url}/_health`).then(
      (a) => a.ok,
      () => false
    )
  );
  const { data } = await post(`${url}/admin/register-admin`, {
    firstname: 'Ada',
    lastname: 'Site',
    email: 'ada@example.com',
    password: 'Check-1234',
  });
  const admin = data.token ?? data.accessToken;
  const token = await post(
    `${url}/admin/api-tokens`,
    { name: 'check', description: '', type: 'full-access', lifespan: null },
    admin
  );
  const key = token.data.accessKey;
  const api = `${url}/api/fw-crm/v1`;
  const webhook = await post(
    `${api}/webhooks`,
    { name: 'check', url: receiverUrl, events: ['contact.created'] },
    key
  );
  await post(`${api}/contacts`, { email: 'grace@example.com', first_name: 'Grace' }, key);
  const { headers, body } = await waitFor('the signed event', () => received[0], 10_000);
  const expected = createHmac('sha256', webhook.secret)
    .update(`${headers['x-service-timestamp']}.${body}`)
    .digest('hex');
  if (headers['x-service-signature'] !== `sha256=${expected}`) throw new Error('wrong signature');
  if (JSON.parse(body).data.email !== 'grace@example.com') throw new Error(`wrong body ${body}`);
  const page = await fetch(`${url}/admin`);
  if (!page.ok) throw new Error(`GET /admin: ${page.status}`);
};

const received = [];
const receiver = http
  .createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      received.push({ headers: request.headers, body: Buffer.concat(chunks).toString() });
      response.end();
    });
  })
  .listen(0, '127.0.0.1');
await once(receiver, 'listening');

let site;
let passed = false;
try {
  say('packing');
  makeProject(pack());
  say(`installing into ${path.basename(project)}`);
  run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error']);
  say('compiling a consumer of its types');
  const faults = checkTypes(project);
  if (faults.length > 0) throw new Error(`the types: ${faults.join('\n')}`);
  say('building the admin panel');
  run('npx', ['strapi', 'build']);
  const port = await freePort();
  say('starting');
  site = spawn('npx', ['strapi', 'start'], {
    cwd: project,
    env: {
      ...process.env,
      NODE_ENV: 'production',
      PORT: String(port),
      STRAPI_TELEMETRY_DISABLED: 'true',
    },
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  });
  await useSite(
    `http://127.0.0.1:${port}`,
    `http://127.0.0.1:${receiver.address().port}/`,
    received
  );
  say('a signed event arrived from a project that installed the tarball');
  passed = true;
} catch (error) {
  say(`FAILED: ${error.stack ?? error}`);
} finally {
  if (site?.pid) {
    try {
      process.kill(-site.pid, 'SIGTERM');
      await Promise.race([once(site, 'exit'), new Promise((r) => setTimeout(r, 15_000))]);
    } catch {
      // It has already gone.
    }
  }
  receiver.closeAllConnections();
  receiver.close();
  if (!process.argv.includes('--keep')) fs.rmSync(project, { recursive: true, force: true });
}
console.log(`${passed ? 1 : 0} passed, ${passed ? 0 : 1} failed`);
process.exit(passed ? 0 : 1);
