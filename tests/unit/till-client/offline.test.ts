import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { createOfflineTill, type OfflineTill, type Settlement } from '../../../till-client';
import { FakeService, makeFolder, refusal, saleOf } from './support';

describe('the offline till', () => {
  let service: FakeService;
  let folder: string;
  let settled: Settlement[];
  const open: OfflineTill[] = [];

  beforeEach(async () => {
    service = await FakeService.start();
    folder = makeFolder();
    settled = [];
  });
  afterEach(async () => {
    for (const till of open.splice(0)) await till.stop();
    await service.close();
    fs.rmSync(folder, { recursive: true, force: true });
  });

  const tillWith = (changes: Partial<Parameters<typeof createOfflineTill>[0]> = {}) => {
    const till = createOfflineTill({
      url: service.url,
      key: 'k',
      secret: 's',
      folder,
      random: () => -0.98,
      onSettled: (one) => settled.push(one),
      ...changes,
    });
    open.push(till);
    return till;
  };
  const outcomes = () => settled.map(({ outcome }) => outcome);
  const until = async (holds: () => boolean) => {
    while (!holds()) await new Promise((resolve) => setTimeout(resolve, 2));
  };
  const readFolder = (name = '') => fs.readdirSync(path.join(folder, name));

  it('keeps the order of the calls over an outage and a restart', async () => {
    const offline = tillWith({ url: 'http://127.0.0.1:9' });
    await Promise.all(['1', '2', '3'].map((id) => offline.sale(saleOf(id))));
    expect(await offline.flush()).toMatchObject({ sent: 0, remaining: 3 });
    await offline.stop();
    const online = tillWith().run();
    await online.sale(saleOf('4'));
    await until(() => service.received.length === 4);
    expect(service.ids).toEqual(['1', '2', '3', '4']);
    await online.stop();
    expect(await online.pending()).toEqual([]);
  });

  it('keeps a closing behind the sales it speaks of', async () => {
    const till = tillWith();
    await till.sale(saleOf('1'));
    await till.closing('{"external_id":"shift"}');
    expect(await till.pending()).toEqual(['000000000001.sale.json', '000000000002.closing.json']);
    expect(await till.flush()).toMatchObject({ sent: 2, remaining: 0 });
    expect(service.received.map((one) => one.path)).toEqual(['/sale', '/closing']);
  });

  it('keeps the bytes it was given, whatever its caller does with them', async () => {
    const till = tillWith();
    const bytes = Buffer.from('{"external_id":"a"}');
    const kept = till.sale(bytes);
    bytes.fill(0);
    await kept;
    await till.flush();
    expect(service.ids).toEqual(['a']);
  });

  it('sends a record that comes while it idles at once', async () => {
    const till = tillWith().run();
    await new Promise((resolve) => setTimeout(resolve, 30));
    await till.sale(saleOf('1'));
    await until(() => settled.length === 1);
    expect(outcomes()).toEqual(['accepted']);
  });

  it('puts records that are refused aside with the answer, and goes on', async () => {
    const till = tillWith();
    for (const id of ['1', '2', '3', '4']) await till.sale(saleOf(id));
    service.replies.push(
      { status: 400, body: refusal('schema_invalid', { field: 'total' }) },
      { status: 403, body: refusal('insufficient_scope') },
      { status: 409, body: refusal('stale_count') }
    );
    expect(await till.flush()).toEqual({ sent: 4, remaining: 0, error: null });
    expect(outcomes()).toEqual(['refused', 'refused', 'stale', 'accepted']);
    expect(await till.refused()).toEqual(['000000000001.sale.json', '000000000002.sale.json']);
    const beside = path.join(folder, 'refused/000000000001.sale.answer.json');
    expect(JSON.parse(fs.readFileSync(beside, 'utf8'))).toMatchObject({
      status: 400,
      code: 'schema_invalid',
      field: 'total',
    });
  });

  it('sends what was put aside once more when it is told to, behind what waits', async () => {
    const till = tillWith();
    service.replies.push({ status: 403, body: refusal('insufficient_scope') });
    await till.refund({ external_id: 'r', sale_external_id: 's', occurred_at: 'x' });
    await till.flush();
    await till.sale(saleOf('later'));
    expect(await till.requeue()).toBe(1);
    await till.flush();
    expect(service.ids).toEqual(['r', 'later', 'r']);
    expect(service.received.at(-1)?.path).toBe('/refund');
    expect(readFolder('refused')).toEqual([]);
  });

  it.each([
    ['wrong credentials', { status: 401, body: refusal('signature_mismatch') }],
    ['a wrong address', { status: 404, body: refusal('not_found') }],
    ['a gateway’s own 403', { status: 403, body: '<h1>Blocked</h1>' }],
    ['a page of the shop’s Wi-Fi', { status: 200, body: '<h1>Accept our terms</h1>' }],
    ['a service that is down', { status: 503, body: refusal('not_ready') }],
  ])('loses nothing to %s: the records wait in order', async (_what, reply) => {
    const till = tillWith();
    for (const id of ['1', '2']) await till.sale(saleOf(id));
    service.replies.push(reply);
    expect(await till.flush()).toMatchObject({ sent: 0, remaining: 2 });
    expect(outcomes()).toEqual(['waiting']);
    expect(await till.flush()).toMatchObject({ sent: 2, remaining: 0, error: null });
    expect(service.ids).toEqual(['1', '1', '2']);
  });

  it('flushes at once after a failure, but not before a Retry-After is over', async () => {
    let nowMs = 1_000_000;
    const till = tillWith({ now: () => nowMs });
    await till.sale(saleOf('1'));
    service.replies.push({
      status: 429,
      headers: { 'retry-after': '30' },
      body: refusal('rate_limited'),
    });
    await till.flush();
    nowMs += 29_000;
    expect(await till.flush()).toMatchObject({ sent: 0, remaining: 1, error: { status: 429 } });
    expect(service.received).toHaveLength(1);
    nowMs += 1000;
    expect(await till.flush()).toMatchObject({ sent: 1, remaining: 0 });
  });

  it('does not stop because its owner’s callback throws', async () => {
    const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const till = tillWith({
      onSettled() {
        throw new Error('oops');
      },
    });
    for (const id of ['1', '2']) await till.sale(saleOf(id));
    expect(await till.flush()).toMatchObject({ sent: 2, error: null });
    expect(service.ids).toEqual(['1', '2']);
    expect(warned).toHaveBeenCalledTimes(2);
    warned.mockRestore();
  });

  it('never sends a record twice because the loop and flush run together', async () => {
    const till = tillWith();
    for (let id = 0; id < 20; id += 1) await till.sale(saleOf(String(id)));
    till.run();
    await Promise.all([till.flush(), till.flush()]);
    expect(service.ids).toEqual(Array.from({ length: 20 }, (_, id) => String(id)));
  });

  it('removes what a crash left half written, and never sends it', async () => {
    fs.writeFileSync(path.join(folder, '000000000001.sale.json.part'), '{"external_id":"ha');
    const till = tillWith();
    await till.sale(saleOf('whole'));
    await till.flush();
    expect(service.ids).toEqual(['whole']);
    expect(readFolder().filter((name) => name.endsWith('.part'))).toEqual([]);
  });

  it('refuses a kind that does not exist before it is on the disk', async () => {
    await expect(tillWith().add('gift' as 'sale', {})).rejects.toThrow(TypeError);
    expect(readFolder()).toEqual([]);
  });

  it.each([
    ['payload_mismatch', { state: 'applied', payload_mismatch: true }],
    ['simulated', { state: 'simulated' }],
    ['simulated', { state: 'held', duplicate: true, mode: 'test' }],
  ])('never takes %s for accepted on a live till', async (code, more) => {
    service.respond = ({ path: route }) => ({
      status: 200,
      body: route === '/ping' ? { ok: true, mode: 'live' } : { ok: true, event_id: 7, ...more },
    });
    const till = tillWith();
    const name = await till.sale(saleOf('1'));
    expect(await till.flush()).toMatchObject({ remaining: 0, error: null });
    expect(settled).toMatchObject([{ outcome: 'refused', error: { code, body: more } }]);
    expect(await till.refused()).toEqual([name]);
    const beside = path.join(folder, 'refused/000000000001.sale.answer.json');
    expect(JSON.parse(fs.readFileSync(beside, 'utf8'))).toMatchObject({ status: 200, ...more });
  });

  it('takes simulated for accepted where the connection is in test mode', async () => {
    service.respond = ({ path: route }) => ({
      status: 200,
      body: route === '/ping' ? { ok: true, mode: 'test' } : { ok: true, state: 'simulated' },
    });
    const till = tillWith();
    for (const id of ['1', '2']) await till.sale(saleOf(id));
    await till.flush();
    expect(outcomes()).toEqual(['accepted', 'accepted']);
    expect(service.received.filter((one) => one.path === '/ping')).toHaveLength(1);
  });

  it('keeps a simulated record that it cannot ask the mode of', async () => {
    const till = tillWith();
    await till.sale(saleOf('1'));
    service.replies.push(
      { status: 200, body: { ok: true, state: 'simulated' } },
      { status: 503, body: refusal('not_ready') }
    );
    expect(await till.flush()).toMatchObject({ sent: 0, remaining: 1, error: { status: 503 } });
    expect(await till.flush()).toMatchObject({ sent: 1, remaining: 0, error: null });
  });

  it('two tills on one folder give no number twice, and overwrite nothing', async () => {
    const [one, other] = [tillWith(), tillWith()];
    const names: string[] = [];
    // By turns first: each goes on from what it knew, whatever the other has done meanwhile.
    names.push(await one.sale(saleOf('0')), await other.refund('{"external_id":"1"}'));
    names.push(await one.sale(saleOf('2')), await other.sale(saleOf('3')));
    const adds = Array.from({ length: 40 }, (_, n) =>
      (n % 2 ? one : other).add(n % 3 ? 'sale' : 'refund', saleOf(String(n + 4)))
    );
    names.push(...(await Promise.all(adds)));
    const numbers = new Set(names.map((name) => name.slice(0, 12)));
    expect(numbers.size).toBe(44);
    expect(await one.pending()).toEqual([...names].sort());
    await one.flush();
    expect([...service.ids].sort()).toEqual(Array.from({ length: 44 }, (_, n) => `${n}`).sort());
  });

  it('removes nothing that it did not send', async () => {
    const till = tillWith();
    const name = await till.sale(saleOf('old'));
    service.respond = () => {
      // While the answer is under way, somebody puts another record under the same name.
      fs.writeFileSync(path.join(folder, name), JSON.stringify(saleOf('new')));
      service.respond = () => ({ status: 202, body: { ok: true, state: 'pending' } });
      return { status: 202, body: { ok: true, state: 'pending' } };
    };
    expect(await till.flush()).toMatchObject({ remaining: 0, error: null });
    expect(service.ids).toEqual(['old', 'new']);
  });

  it('two tills on one folder that send at once end with nothing left', async () => {
    const tills = [tillWith(), tillWith()];
    for (let id = 0; id < 30; id += 1) await tills[0]?.sale(saleOf(String(id)));
    service.respond = ({ body }) =>
      Number((JSON.parse(body) as { external_id: string }).external_id) % 3
        ? { status: 202, body: { ok: true, state: 'pending' } }
        : { status: 400, body: refusal('schema_invalid') };
    const results = await Promise.all(tills.map((till) => till.flush()));
    expect(results.map(({ error }) => error)).toEqual([null, null]);
    expect(await tills[0]?.pending()).toEqual([]);
    expect(await tills[1]?.refused()).toHaveLength(10);
  });

  it('sets a file aside that cannot be read, says so, and goes on', async () => {
    const till = tillWith();
    const names = [];
    for (const id of ['1', '2', '3']) names.push(await till.sale(saleOf(id)));
    fs.rmSync(path.join(folder, names[1] ?? ''));
    fs.mkdirSync(path.join(folder, names[1] ?? ''));
    expect(await till.flush()).toMatchObject({ remaining: 0, error: null });
    expect(outcomes()).toEqual(['accepted', 'unreadable', 'accepted']);
    expect(settled[1]).toMatchObject({ name: names[1], error: { code: 'EISDIR' } });
    expect(await till.refused()).toEqual([names[1]]);
    expect(service.ids).toEqual(['1', '3']);
    // It stays there: nothing of it can be sent.
    expect(await till.requeue()).toBe(0);
    expect(await till.refused()).toEqual([names[1]]);
  });

  it('waits where a file cannot be opened for want of handles, and sets nothing aside', async () => {
    const till = tillWith();
    await till.sale(saleOf('1'));
    const short = Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
    const reads = jest.spyOn(fs.promises, 'readFile').mockRejectedValue(short);
    const { error, remaining } = await till.flush();
    reads.mockRestore();
    expect([error, remaining]).toEqual([short, 1]);
    expect(await till.refused()).toEqual([]);
    expect(await till.flush()).toMatchObject({ sent: 1, remaining: 0, error: null });
  });

  it('sends what other routes take while one answers 404', async () => {
    const till = tillWith();
    await till.inventory('{"external_id":"count"}');
    await till.sale(saleOf('1'));
    await till.closing('{"external_id":"shift"}');
    await till.inventory('{"external_id":"count-2"}');
    service.respond = ({ path: route }) =>
      route === '/inventory'
        ? { status: 404, body: refusal('not_found') }
        : { status: 202, body: { ok: true, state: 'pending' } };
    expect(await till.flush()).toMatchObject({ sent: 2, remaining: 2, error: { status: 404 } });
    // One was enough to know.
    expect(service.ids).toEqual(['count', '1', 'shift']);
    expect(outcomes()).toEqual(['waiting', 'accepted', 'accepted']);
  });

  it('keeps a closing behind sales whose route answers 404', async () => {
    const till = tillWith();
    await till.sale(saleOf('1'));
    await till.closing('{"external_id":"shift"}');
    await till.refund('{"external_id":"r"}');
    service.respond = ({ path: route }) =>
      route === '/sale'
        ? { status: 404, body: refusal('not_found') }
        : { status: 202, body: { ok: true, state: 'pending' } };
    expect(await till.flush()).toMatchObject({ sent: 1, remaining: 2, error: { status: 404 } });
    expect(service.ids).toEqual(['1', 'r']);
  });

  it('sends a new record at once while another route answers 404', async () => {
    service.respond = ({ path: route }) =>
      route === '/inventory'
        ? { status: 404, body: refusal('not_found') }
        : { status: 202, body: { ok: true, state: 'pending' } };
    // Each pause after a failure is as long as it gets.
    const till = tillWith({ random: () => 10_000 });
    await till.inventory('{"external_id":"count"}');
    till.run();
    await until(() => settled.length === 1);
    await till.sale(saleOf('1'));
    await until(() => settled.length === 2);
    expect(outcomes()).toEqual(['waiting', 'accepted']);
    expect(service.ids).toEqual(['count', '1']);
  });

  it('kill -9 again and again: what was said to be kept arrives, in order', async () => {
    const program = `
      const { createOfflineTill } = require(${JSON.stringify(path.resolve('till-client'))});
      const till = createOfflineTill({ url: process.env.URL, key: 'k', secret: 's', folder: process.env.FOLDER });
      till.run();
      (async () => {
        for (let n = 0; ; n += 1) {
          const id = process.env.ROUND + '-' + n;
          await till.sale({ external_id: id, occurred_at: 'x', currency: 'GBP', total: 1, line_items: [] });
          process.stdout.write(id + '\\n');
        }
      })();`;
    const kept: string[] = [];
    for (let round = 0; round < 6; round += 1) {
      const env = {
        ...process.env,
        NODE_OPTIONS: '',
        URL: service.url,
        FOLDER: folder,
        ROUND: `${round}`,
      };
      const child = spawn(process.execPath, ['-e', program], {
        env,
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let printed = '';
      child.stdout.on('data', (chunk: Buffer) => (printed += String(chunk)));
      const ended = new Promise((resolve) => child.once('close', resolve));
      await until(() => printed.includes('\n'));
      await new Promise((resolve) => setTimeout(resolve, 20 + round * 17));
      child.kill('SIGKILL');
      await ended;
      // The last line may be cut in half by the kill.
      kept.push(...printed.split('\n').slice(0, -1));
    }
    expect(await tillWith().flush()).toMatchObject({ remaining: 0, error: null });
    const firstArrivals = [...new Set(service.ids)];
    // One a round at least: each was killed after it had said so once.
    expect(kept.length).toBeGreaterThanOrEqual(6);
    expect(firstArrivals.filter((id) => kept.includes(id))).toEqual(kept);
    for (const { body } of service.received)
      expect(() => JSON.parse(body) as unknown).not.toThrow();
  }, 60_000);
});
