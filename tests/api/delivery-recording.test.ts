import { recordAttempts, type MadeAttempt } from '../../server/src/webhooks/sending/record';
import { BY_HAND, getDeliveryStore } from '../../server/src/webhooks/deliveries/store';
import { queueDeliveries } from '../../server/src/webhooks/publish';
import type { WebhookRow } from '../../server/src/webhooks/tables';
import { uuidV7 } from '../../server/src/runtime/ids';
import { createDatabase, databases, describeEach, dropDatabase } from '../support/databases';
import { type SmallSite, startSmallSite } from '../support/small-site';

const MINUTE_MS = 60_000;

const ROW = {
  url: 'http://127.0.0.1/',
  events: '[]',
  active: true,
  secret: 'sealed',
  consecutive_failures: 0,
  previous_secret: null,
  previous_secret_until: null,
  paused_until: null,
  created_at: 0,
  updated_at: 0,
};

/** The record of its attempts that a webhook's row keeps. */
const keptOf = (row: WebhookRow) => ({
  failed: Number(row.failed_attempts),
  failingSince: row.failing_since === null ? null : Number(row.failing_since),
  attempted: row.attempted === null ? null : Boolean(row.attempted),
  unwellSince: row.unwell_since === null ? null : Number(row.unwell_since),
  isAlarmed: row.alarmed_at !== null,
  pausedUntil: row.paused_until === null ? null : Number(row.paused_until),
  answered: row.answered_rotation === null ? null : Number(row.answered_rotation),
});

const UNTRIED = {
  ...{ failed: 0, failingSince: null, attempted: null, unwellSince: null, isAlarmed: false },
  ...{ pausedUntil: null, answered: null },
};

describeEach(databases(), 'attempts of several webhooks, recorded together', (kind) => {
  let name: string | null = null;
  let site: SmallSite;
  let serial = 0;
  let endedAt = 0;

  beforeAll(async () => {
    if (kind !== 'sqlite') name = await createDatabase(kind);
    site = await startSmallSite({}, 'http', name === null ? undefined : { kind, name });
  });
  afterAll(async () => {
    await site.close();
    if (kind !== 'sqlite' && name !== null) await dropDatabase(kind, name);
  });

  const webhooks = () => site.connection('switchboard_webhooks');
  const addWebhook = async (columns: object = {}): Promise<WebhookRow> => {
    serial += 1;
    const id = serial;
    await webhooks().insert({ ...ROW, id, document_id: `w${id}`, name: `w${id}`, ...columns });
    return webhooks().where({ id }).first();
  };
  const kept = async ({ id }: WebhookRow) => keptOf(await webhooks().where({ id }).first());

  /** An attempt of a new delivery that ended now, answered with a status. */
  const attempt = async (
    webhook: WebhookRow,
    status: number,
    { retryAfter, isTest = false }: { retryAfter?: string; isTest?: boolean } = {}
  ): Promise<MadeAttempt> => {
    const store = getDeliveryStore(site.app);
    const deliveryId = uuidV7(Date.now());
    const delivery = {
      ...{ deliveryId, webhook: webhook.id, url: webhook.url, body: '{}', isTest },
      ...{ event: 'contact.created', at: store.now() },
    };
    await site.app.db.transaction((tx) =>
      queueDeliveries(store, tx, [delivery], { isByHand: true })
    );
    const [lease] = await store.claim([{ group: BY_HAND, limit: 1 }]);
    const ok = status < 300;
    return {
      lease: lease!,
      webhook,
      ok,
      endedAt,
      retryAfter,
      attempt: {
        ...{ at: Date.UTC(2026, 0, 1), url: webhook.url, request_headers: '{}' },
        ...{ status, answer_headers: '{}', answer_body: 'answer', truncated: false },
        error: ok ? null : `http_${status}`,
        duration_ms: 3,
        manual: false,
      },
    };
  };
  const record = async (...made: MadeAttempt[]): Promise<number> => {
    let recorded = 0;
    await recordAttempts(site.app, made, async (some) => {
      recorded += some.length;
    });
    return recorded;
  };
  beforeEach(() => {
    endedAt = getDeliveryStore(site.app).now();
  });

  it('each count for their own webhook, once', async () => {
    const failing = await addWebhook();
    const well = await addWebhook();
    const made = [
      await attempt(failing, 500),
      await attempt(well, 200),
      await attempt(failing, 503, { retryAfter: '60' }),
      await attempt(failing, 500),
    ];
    expect(await record(...made)).toBe(4);
    expect(await kept(failing)).toEqual({
      ...{ ...UNTRIED, failed: 2, failingSince: endedAt, attempted: true, unwellSince: endedAt },
      ...{ isAlarmed: true, pausedUntil: endedAt + MINUTE_MS },
    });
    expect(await kept(well)).toEqual({ ...UNTRIED, attempted: true });
    expect(await record(...made)).toBe(0);
    expect((await kept(failing)).failed).toBe(2);
  });

  it('prolong a pause, never shorten it, and say nothing else of the webhook', async () => {
    const pausedUntil = endedAt + 5 * MINUTE_MS;
    const webhook = await addWebhook({ paused_until: pausedUntil });
    const paused = (seconds: string) => attempt(webhook, 429, { retryAfter: seconds });
    expect(await record(await paused('60'))).toBe(1);
    expect(await kept(webhook)).toEqual({ ...UNTRIED, pausedUntil });
    expect(await record(await paused('600'), await paused('60'))).toBe(2);
    expect(await kept(webhook)).toEqual({ ...UNTRIED, pausedUntil: endedAt + 10 * MINUTE_MS });
  });

  it('note that a test was answered since the rotation, but of no later one', async () => {
    const until = endedAt + 60 * MINUTE_MS;
    const rotated = { previous_secret: 'sealed', previous_secret_until: until };
    const webhook = await addWebhook(rotated);
    const again = await addWebhook(rotated);
    const later = { previous_secret_until: until + MINUTE_MS };
    const made = [
      await attempt(webhook, 200, { isTest: true }),
      await attempt(again, 200, { isTest: true }),
    ];
    await webhooks().where({ id: again.id }).update(later);
    expect(await record(...made)).toBe(2);
    expect(await kept(webhook)).toEqual({ ...UNTRIED, answered: until });
    expect(await kept(again)).toEqual(UNTRIED);
  });

  it('mean nothing to a webhook that has another address by now', async () => {
    const webhook = await addWebhook();
    const made = [
      await attempt(webhook, 503, { retryAfter: '60' }),
      await attempt(webhook, 410),
      await attempt(webhook, 500),
    ];
    await webhooks().where({ id: webhook.id }).update({ url: 'http://127.0.0.1/other' });
    expect(await record(...made)).toBe(3);
    expect(await kept(webhook)).toEqual(UNTRIED);
    const rows = await site.connection('switchboard_deliveries').where({ webhook_id: webhook.id });
    expect(rows.map(({ status, tries }) => [status, Number(tries)])).toEqual(
      made.map(() => ['pending', 1])
    );
  });

  it('are recorded although the database refuses the answers of others', async () => {
    const webhook = await addWebhook();
    const made = [await attempt(webhook, 200), await attempt(webhook, 200)];
    const [nul, broken] = [await attempt(webhook, 200), await attempt(webhook, 200)];
    Object.assign(nul.attempt, { answer_body: 'a\0b' });
    Object.assign(broken.attempt, { status: 'two hundred' });
    const before = site.lines.length;
    const lost = kind === 'sqlite' ? 0 : 1;
    expect(await record(made[0], nul, broken, made[1])).toBe(4 - lost);
    const said = site.lines.slice(before).join('\n');
    expect(said.match(/could not be recorded/g) ?? []).toHaveLength(lost);
    const bare = kind === 'postgres' ? 1 : 0;
    expect(said.match(/was recorded without the answer/g) ?? []).toHaveLength(bare);
    const { failed, attempted } = await kept(webhook);
    expect({ failed, attempted }).toEqual({ failed: 0, attempted: true });
  });
});
