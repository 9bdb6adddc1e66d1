import { createSocket, type Socket } from 'node:dgram';
import type { AddressInfo } from 'node:net';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { createWebhook, removeWebhooks, send, waitForDelivery } from './delivery-support';

const A = 1;

/** The name a DNS question asks about, and where the question ends. */
const readQuestion = (packet: Buffer): { name: string; type: number; end: number } => {
  const labels: string[] = [];
  let at = 12;
  for (let size = packet[at] ?? 0; size > 0; size = packet[at] ?? 0) {
    labels.push(packet.toString('ascii', at + 1, at + 1 + size));
    at += size + 1;
  }
  return { name: labels.join('.').toLowerCase(), type: packet.readUInt16BE(at + 1), end: at + 5 };
};

/** A name server on loopback: `good.*` is 127.0.0.1, `hang*` is never answered, the rest is unknown. */
const startNameServer = async (): Promise<{ port: number; socket: Socket }> => {
  const socket = createSocket('udp4');
  socket.on('message', (packet, { port, address }) => {
    const { name, type, end } = readQuestion(packet);
    if (name.startsWith('hang')) return;
    const known = name.startsWith('good.');
    const answers = known && type === A ? 1 : 0;
    const head = Buffer.from(packet.subarray(0, 12));
    head.writeUInt16BE(known ? 0x8180 : 0x8183, 2);
    head.writeUInt16BE(answers, 6);
    head.writeUInt32BE(0, 8);
    const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 127, 0, 0, 1]);
    const question = packet.subarray(12, end);
    socket.send(Buffer.concat([head, question, ...(answers ? [record] : [])]), port, address);
  });
  await new Promise<void>((done) => socket.bind(0, '127.0.0.1', done));
  return { port: (socket.address() as AddressInfo).port, socket };
};

describe('names whose DNS hangs', () => {
  let site: Site;
  let receiver: Receiver;
  let server: Awaited<ReturnType<typeof startNameServer>>;
  beforeAll(async () => {
    receiver = await startReceiver();
    server = await startNameServer();
    site = await startSite({
      options: { webhooks: { timeoutMs: 8000, pollSeconds: 1, retryScheduleSeconds: [60] } },
    });
    await site.evaluate(({ require }, port) => {
      const dns = require('node:dns');
      dns.setServers([`127.0.0.1:${port}`]);
      // The system's resolver hangs for whatever it is asked, as it would with the same DNS.
      dns.promises.lookup = () => new Promise(() => {});
    }, server.port);
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
    server?.socket.close();
  }, 60_000);
  afterEach(() => removeWebhooks(site));

  it('do not hold up a third receiver', async () => {
    const url = (name: string) => `http://${name}:${receiver.port}/`;
    const hanging = [];
    for (const name of ['hang1.example', 'hang2.example', 'hang3.example', 'hang4.example']) {
      hanging.push(await createWebhook(site, 'http://127.0.0.1:9/'));
      const id = hanging.at(-1)?.id;
      await site.control('sql', {
        statement: 'UPDATE switchboard_webhooks SET url = ? WHERE id = ?',
        bindings: [url(name), id],
      });
    }
    await createWebhook(site, url('good.example'));
    for (let n = 0; n < 20; n += 1) await send(site, 'order.placed', { n });
    const started = Date.now();
    await receiver.waitFor(20);
    // Their attempts end with 8 s; nothing of the third waited for that.
    expect(Date.now() - started).toBeLessThan(7500);
    const [first] = hanging;
    const failed = await waitForDelivery(site, first?.id ?? 0, ({ tries }) => tries > 0);
    expect(['dns', 'timeout']).toContain(failed.error);
  });

  it('do not hold up the answer about a name that nobody knows', async () => {
    const { id } = await createWebhook(site, `http://lost.example:${receiver.port}/`);
    await send(site, 'order.placed', {});
    const failed = await waitForDelivery(site, id, ({ tries }) => tries > 0);
    expect(failed.error).toBe('dns');
  });
});
