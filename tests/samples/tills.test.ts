import { spawn } from 'node:child_process';
import fs from 'node:fs';
import vectors from '../../docs/vectors/pos-signatures.json';
import { verifySignature } from '../../server/src/pos/intake/authentication';
import { isInstalled } from '../support/programs';
import { codeBlocks, readDocument } from '../unit/docs/support/markdown';
import { FakeService, makeFolder } from '../unit/till-client/support';

/** The code of docs/tills.md, run as a stranger would run it, against the server's own check. */

const document = readDocument('docs/tills.md');
const KEY = 'pos_live_4TqPzvX8mJc2LrWkYb7NdHsE';
const SECRET = 'pos_secret_9fK2mQ7xVb4TzLr8WcYp3NdHs6EjGa1UuXo5RiBtMvZ';

const snippet = (language: string, having: string): string => {
  const found = codeBlocks(document).find(
    (block) => block.language === language && block.code.includes(having)
  );
  if (!found) throw new Error(`docs/tills.md has no ${language} with ${having}`);
  return found.code;
};

interface Language {
  name: string;
  probe: [string, ...string[]];
  /** Program and arguments that send `record` as a sale to `url`. */
  command(url: string): [string, ...string[]];
}

const LANGUAGES: Language[] = [
  {
    name: 'curl and openssl',
    probe: ['sh', '-c', 'curl --version && openssl version'],
    command: (url) => [
      'sh',
      '-c',
      snippet('sh', 'openssl')
        .replace(/^URL=.*$/m, () => `URL=${url}`)
        .replace(/^send sale .*$/m, () => `send sale "$RECORD"`),
    ],
  },
  {
    name: 'Node',
    probe: [process.execPath, '--version'],
    command: (url) => [
      process.execPath,
      '--input-type=module',
      '-e',
      `const { POS_KEY: key, POS_SECRET: secret } = process.env;
       const url = '${url}', record = JSON.parse(process.env.RECORD);
       ${snippet('js', 'createHmac')}`,
    ],
  },
  {
    name: 'Python',
    probe: ['python3', '--version'],
    command: (url) => [
      'python3',
      '-c',
      `${snippet('python', 'hmac')}
import os
print(send("${url}", os.environ["POS_KEY"], os.environ["POS_SECRET"], "sale", json.loads(os.environ["RECORD"])))`,
    ],
  },
  {
    name: 'PHP',
    probe: ['php', '--version'],
    command: (url) => [
      'php',
      '-r',
      `${snippet('php', 'hash_hmac')}
       $answer = send_record('${url}', getenv('POS_KEY'), getenv('POS_SECRET'), 'sale', json_decode(getenv('RECORD'), true));
       if ($answer['status'] !== 202 || $answer['body']['ok'] !== true) { exit(1); }`,
    ],
  },
];

LANGUAGES.push({
  name: 'C#',
  probe: ['bash', '-c', 'mcs --version && mono --version'],
  command: (url) => [
    'bash',
    '-c',
    // Compiled once: its url is the same in all tests.
    `[ -e till.exe ] || cat > Till.cs <<'END' && mcs -r:System.Net.Http -out:till.exe Till.cs >&2
${snippet('csharp', 'HMACSHA256')}
static class Program
{
    static int Main()
    {
        Func<string, string> env = Environment.GetEnvironmentVariable;
        var body = Encoding.UTF8.GetBytes(env("RECORD"));
        var answer = Till.Send(new HttpClient(), "${url}", env("POS_KEY"), env("POS_SECRET"), "sale", body).Result;
        Environment.Exit((int)answer.StatusCode == 202 ? 0 : 1);
        return 1;
    }
}
END
[ -e till.exe ] && exec mono till.exe`,
  ],
});

const isThere = ({ probe: [program, ...args] }: Language): boolean => isInstalled(program, ...args);

const folder = makeFolder();
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

const run = ([program, ...args]: [string, ...string[]], env: Record<string, string>) =>
  new Promise<{ code: number | null; errors: string }>((resolve) => {
    const child = spawn(program, args, {
      cwd: folder,
      env: { ...process.env, NODE_OPTIONS: '', ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: 30_000,
    });
    let errors = '';
    child.stderr.on('data', (chunk: Buffer) => (errors += String(chunk)));
    child.once('close', (code) => resolve({ code, errors }));
  });

describe.each(LANGUAGES)('the $name of docs/tills.md', (language) => {
  let service: FakeService;
  beforeAll(async () => {
    service = await FakeService.start();
  });
  afterAll(() => service.close());

  // A machine without the language cannot say anything about it.
  (isThere(language) ? it : it.skip).each(['compact', 'unicode', 'slashes'])(
    'signs the bytes it sends: %s',
    async (name) => {
      const record = vectors.vectors.find((vector) => vector.name === name)?.body ?? '';
      expect(record).not.toBe('');
      const command = language.command(service.url);
      const result = await run(command, { POS_KEY: KEY, POS_SECRET: SECRET, RECORD: record });
      expect(result).toMatchObject({ code: 0 });
      const sent = service.received.at(-1);
      expect(sent?.path).toBe('/sale');
      expect(JSON.parse(sent?.body ?? '')).toEqual(JSON.parse(record));
      expect(sent?.headers['content-type']).toBe('application/json');
      expect(sent?.headers['x-pos-key']).toBe(KEY);
      const timestamp = String(sent?.headers['x-pos-timestamp']);
      expect(Math.abs(Number(timestamp) - Date.now() / 1000)).toBeLessThan(60);
      const signature = String(sent?.headers['x-pos-signature']);
      const body = Buffer.from(sent?.body ?? '');
      expect(verifySignature(SECRET, { timestamp, signature, body })).toBe(true);
    },
    60_000
  );

  (isThere(language) ? it : it.skip).each([undefined, '', '  '])(
    'sends nothing without a secret: %p',
    async (secret) => {
      const before = service.received.length;
      const record = vectors.vectors.find(({ name }) => name === 'compact')?.body ?? '';
      const { POS_SECRET: _, ...env } = process.env;
      const given = {
        ...env,
        POS_KEY: KEY,
        RECORD: record,
        ...(secret !== undefined && { POS_SECRET: secret }),
      };
      const result = await run(language.command(service.url), given as Record<string, string>);
      expect(result.code).toEqual(expect.any(Number));
      expect(result.code).not.toBe(0);
      expect(service.received).toHaveLength(before);
    },
    60_000
  );
});
