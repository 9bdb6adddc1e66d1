import { randomUUID } from 'node:crypto';
import { generateSecret, signatureHeaders } from '../../server/src/webhooks/rules/request-headers';
import { lacks, type Sample, SAMPLES } from '../support/receiver-samples';
import { type RunningReceiver, startReceiver, tryToStart } from './receiver-process';

const START_MS = 120_000;

const nowSeconds = () => Math.floor(Date.now() / 1000);

const makeEvent = (name = 'Zoë Śliwa 😀') => {
  const deliveryId = randomUUID();
  const event = 'contact.created';
  const body = JSON.stringify({
    id: deliveryId,
    event,
    created_at: '2026-03-01T14:05:00.000+00:00',
    site: 'https://example.com',
    data: { email: 'zoe@example.com', name, note: ' a "quoted"\n\\line ' },
  });
  return { deliveryId, event, body };
};

const post = async (
  url: string,
  headers: Record<string, string>,
  body: string
): Promise<number> => {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });
  await answer.arrayBuffer();
  return answer.status;
};

const without = (headers: Record<string, string>, ...names: string[]) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)));

/** The samples that can be run here; says which are left out and why. `REQUIRE_ALL=1` leaves none out. */
export const available = (isWanted: (sample: Sample) => boolean): Sample[] =>
  SAMPLES.filter(isWanted).filter((sample) => {
    const reason = process.env.REQUIRE_ALL === '1' ? null : lacks(sample);
    if (reason === null) return true;
    process.stderr.write(`examples/receivers/${sample.folder} is not tried: ${reason}\n`);
    return false;
  });

/** One sample, as a stranger would run it, against our signatures. */
export const describeReceiver = (
  sample: Sample,
  secretsThatAreNone: readonly (string | undefined)[]
): void => {
  const secret = generateSecret();
  let receiver: RunningReceiver;

  const sign = (
    { deliveryId, event, body }: ReturnType<typeof makeEvent>,
    { timestamp = nowSeconds(), key = secret } = {}
  ) => signatureHeaders({ secret: key, deliveryId, event, timestamp, body });

  const timesSeen = (id: string, word: string): number =>
    receiver
      .output()
      .split('\n')
      .filter((line) => line === `${word} contact.created ${id}`).length;

  /** What a process prints before it answers may reach us after its answer. */
  const printed = async (id: string, lines: number): Promise<void> => {
    const until = Date.now() + 5000;
    while (receiver.output().split(id).length - 1 < lines && Date.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };

  beforeAll(async () => {
    receiver = await startReceiver(sample, secret);
  }, START_MS);

  afterAll(async () => {
    await receiver?.stop();
  });

  const expectUnknown = (id: string): void => {
    expect(receiver.output()).not.toContain(id);
    expect([...receiver.stored().keys()].join()).not.toContain(id);
  };

  it(
    'does not start without a secret',
    async () => {
      const outcomes = await tryToStart(sample, secretsThatAreNone);
      for (const outcome of outcomes) expect(outcome).toEqual(expect.any(Number));
      expect(outcomes).not.toContain(0);
    },
    START_MS
  );

  it('answers 204 to a genuine post and keeps its bytes', async () => {
    const made = makeEvent();
    expect(await post(receiver.url, sign(made), made.body)).toBe(204);
    await printed(made.deliveryId, 1);
    expect(timesSeen(made.deliveryId, 'stored')).toBe(1);
    expect(receiver.stored().get(`${made.deliveryId}.json`)?.toString('utf8')).toBe(made.body);
  });

  it('takes an event of a megabyte', async () => {
    const made = makeEvent('ż'.repeat(500_000));
    expect(await post(receiver.url, sign(made), made.body)).toBe(204);
    expect(receiver.stored().get(`${made.deliveryId}.json`)?.toString('utf8')).toBe(made.body);
  });

  it('answers 204 to every try of a delivery and stores it once', async () => {
    const made = makeEvent();
    const tries = [0, 1, 2].map((later) => sign(made, { timestamp: nowSeconds() - later }));
    for (const headers of tries) expect(await post(receiver.url, headers, made.body)).toBe(204);
    await printed(made.deliveryId, tries.length);
    expect(timesSeen(made.deliveryId, 'stored')).toBe(1);
    expect(timesSeen(made.deliveryId, 'seen before')).toBe(2);
  });

  it('stores it once where two tries come at the same time', async () => {
    const made = makeEvent();
    const tries = [0, 1, 2, 3].map((later) => sign(made, { timestamp: nowSeconds() - later }));
    const answers = await Promise.all(
      tries.map((headers) => post(receiver.url, headers, made.body))
    );
    expect(answers).toEqual(tries.map(() => 204));
    await printed(made.deliveryId, tries.length);
    expect(timesSeen(made.deliveryId, 'stored')).toBe(1);
    expect(timesSeen(made.deliveryId, 'seen before')).toBe(3);
  });

  it('takes what was signed almost 300 seconds ago', async () => {
    const made = makeEvent();
    const headers = sign(made, { timestamp: nowSeconds() - 290 });
    expect(await post(receiver.url, headers, made.body)).toBe(204);
  });

  it.each([-310, 310])('refuses what was signed %i seconds from now', async (away) => {
    const made = makeEvent();
    const headers = sign(made, { timestamp: nowSeconds() + away });
    expect(await post(receiver.url, headers, made.body)).toBe(401);
    expectUnknown(made.deliveryId);
  });

  it('refuses what another secret signed', async () => {
    const made = makeEvent();
    expect(await post(receiver.url, sign(made, { key: generateSecret() }), made.body)).toBe(401);
    expectUnknown(made.deliveryId);
  });

  it('refuses a body that changed on the way', async () => {
    const made = makeEvent();
    const changed = made.body.replace('zoe@', 'eve@');
    expect(await post(receiver.url, sign(made), changed)).toBe(401);
    // The same JSON, written in another way.
    expect(await post(receiver.url, sign(made), made.body.replace(',', ', '))).toBe(401);
    expectUnknown(made.deliveryId);
  });

  it.each(['', '{', 'no JSON'])('verifies before it parses: refuses %j', async (body) => {
    const made = makeEvent();
    expect(await post(receiver.url, sign(made), body)).toBe(401);
    expectUnknown(made.deliveryId);
  });

  it('refuses a timestamp that was freshened', async () => {
    const made = makeEvent();
    const fresh = String(nowSeconds() + 1);
    const headers = {
      ...sign(made),
      'X-Service-Timestamp': fresh,
      'webhook-timestamp': fresh,
    };
    expect(await post(receiver.url, headers, made.body)).toBe(401);
    expectUnknown(made.deliveryId);
  });

  it.each([
    ['no signature', { 'X-Service-Signature': null, 'webhook-signature': null }],
    ['no timestamp', { 'X-Service-Timestamp': null, 'webhook-timestamp': null }],
    ['an empty signature', { 'X-Service-Signature': '', 'webhook-signature': '' }],
    ['a signature that is no text', { 'X-Service-Signature': 'é', 'webhook-signature': 'é' }],
    ['a timestamp that is no number', { 'X-Service-Timestamp': '1e9', 'webhook-timestamp': 'x' }],
  ])('answers 401, not 5xx, to %s', async (_what, changes) => {
    const made = makeEvent();
    const removed = Object.entries(changes).filter(([, value]) => value === null);
    const headers = {
      ...without(sign(made), ...Object.keys(changes)),
      ...Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== null)),
    } as Record<string, string>;
    expect(removed.every(([name]) => !(name in headers))).toBe(true);
    expect(await post(receiver.url, headers, made.body)).toBe(401);
    expectUnknown(made.deliveryId);
  });

  it('leaves nothing half written', () => {
    for (const name of receiver.stored().keys()) expect(name).toMatch(/^[0-9a-f-]{36}\.json$/);
  });
};
