import { type ChildProcess, fork } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { FakeService, makeFolder } from './support';

/** The data of the first message of an event stream, which may come in any number of chunks. */
const firstMessage = async ({ body }: Response): Promise<string> => {
  const reader = body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (!text.includes('\n\n')) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`the stream ended within its first message: ${text}`);
    text += value;
  }
  await reader.cancel();
  return text.split('\n\n')[0]!.replace(/^data: /, '');
};

/** playground/till.mjs, as `npm start` runs it. */

describe('the till of the playground', () => {
  let service: FakeService;
  let folder: string;
  let child: ChildProcess;
  let page: string;

  beforeAll(async () => {
    service = await FakeService.start();
    folder = makeFolder();
    child = fork(path.resolve('playground/till.mjs'), [], {
      env: {
        ...process.env,
        NODE_OPTIONS: '',
        SITE_URL: service.url,
        DATA: folder,
        TILL_KEY: 'k',
        TILL_SECRET: 's',
        TILL_PORT: '0',
      },
      execArgv: [],
    });
    const { note } = await new Promise<{ note: string }>((resolve, reject) => {
      child.once('message', (message) => resolve(message as { note: string }));
      child.once('exit', () => reject(new Error('the till could not start')));
    });
    page = /http:\S+/.exec(note)?.[0] ?? '';
  }, 60_000);
  afterAll(async () => {
    child.kill('SIGKILL');
    await service.close();
    fs.rmSync(folder, { recursive: true, force: true });
  });

  const until = async (holds: () => boolean) => {
    while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10));
  };

  it('sends sales, a refund before its sale, an adjustment and a count', async () => {
    await until(() => service.received.length >= 6);
    const records = service.received.map(
      ({ body }) => JSON.parse(body) as { external_id: string; sale_external_id?: string }
    );
    expect(service.received.slice(0, 6).map(({ path: route }) => route.split('/').pop())).toEqual([
      'sale',
      'refund',
      'sale',
      'sale',
      'inventory',
      'inventory',
    ]);
    expect(records[1]?.sale_external_id).toBe(records[2]?.external_id);
  }, 30_000);

  it('shows each answer on its page, and sends more at a click, from the page alone', async () => {
    expect(await (await fetch(page)).text()).toContain('<h1>Till</h1>');
    const before = service.received.length;
    const click = (headers: Record<string, string>) =>
      fetch(`${page}send`, { method: 'POST', headers, body: 'A count' });
    expect((await click({})).status).toBe(403);
    expect((await click({ 'x-till': '1' })).status).toBe(200);
    await until(() => service.received.length > before);
    const stream = await fetch(`${page}answers`);
    const { entries, actions } = JSON.parse(await firstMessage(stream)) as {
      entries: { kind: string; outcome: string; answer: string }[];
      actions: string[];
    };
    expect(actions).toContain('A count');
    expect(entries.length).toBeGreaterThanOrEqual(6);
    expect(entries[0]).toMatchObject({
      kind: 'sale',
      outcome: 'accepted',
      answer: '202, event 1, pending',
    });
  }, 30_000);

  it('ends with the process that started it', async () => {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.disconnect();
    expect(await ended).toBe(0);
  }, 30_000);
});
