import type { CursorPage, Delivery, Page, Recovery } from '../../shared/contracts/webhooks';
import { anyDatabase, databases, describeEach, itOnce } from '../support/databases';
import { endLeases } from '../support/leases';
import type { Receiver } from '../support/receiver';
import type { Site } from '../support/site';
import { sleep, waitFor } from '../support/wait';
import {
  arrivals,
  countRows,
  createWebhook,
  insertDeliveries,
  listDeliveries,
  removeWebhook,
  send,
  sql,
  testWebhook,
  updateWebhook,
  useSiteAndReceiver,
  waitForDelivery,
} from './delivery-support';
import {
  control,
  deliveryIds,
  getRecovery,
  insertFailed,
  insertFailing,
  isDone,
  previewRecovery,
  RECOVERIES,
  startRecovery,
  waitForRecovery,
} from './recoveries-support';

const LOG = '/api/fw-crm/v1/webhook-deliveries';
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/;
/** Queued and untried at once. */
const AT_MOST = 100;

const switchOffNever = { disableAfterFailures: 100_000 };

describeEach(databases(), 'recoveries', (database) => {
  let site: Site;
  let receiver: Receiver;
  useSiteAndReceiver(
    { database, webhooks: { pollSeconds: 1, timeoutMs: 60_000, ...switchOffNever } },
    (made, receiving) => {
      site = made;
      receiver = receiving;
    }
  );

  const refusalOf = async (path: string, body: unknown) => {
    const answer = await site.request('POST', `${RECOVERIES}${path}`, { body });
    const fields = (answer.body?.error?.details?.errors ?? []).map((one: { path: string[] }) =>
      one.path.join('.')
    );
    return { status: answer.status, fields };
  };

  const inLog = async (query: string): Promise<Delivery[]> =>
    (await site.request<CursorPage<Delivery>>('GET', `${LOG}?limit=100&${query}`)).body.data;

  it('previews what failed, then sends exactly that, once: the same ids and bytes', async () => {
    receiver.respond({ status: 500 });
    const { id } = await createWebhook(site, receiver.url);
    await send(site, 'loyalty.earned', { points: 7 });
    const failing = await waitForDelivery(site, id, ({ state }) => state === 'failing');
    await insertFailed(site, id, 3, { created_at: Date.now() - 60_000 });
    await testWebhook(site, id);
    receiver.clear();
    receiver.respond({ status: 204 });

    const preview = await previewRecovery(site, { webhook: id });
    expect(preview).toEqual({
      preview_id: expect.any(String),
      matching: 4,
      by_webhook: [{ webhook_id: id, count: 4 }],
      oldest_at: expect.stringMatching(TIME),
      sample: expect.any(Array),
    });
    expect(preview.sample.map(({ state }) => state)).toEqual([
      'failing',
      'failed',
      'failed',
      'failed',
    ]);
    expect(preview.oldest_at).toBe(preview.sample.at(-1)?.created_at);
    // Later than what was previewed.
    await insertFailed(site, id, 2);

    const started = await site.request<Recovery>('POST', RECOVERIES, {
      body: { preview_id: preview.preview_id },
    });
    expect(started.status).toBe(201);
    expect(started.body).toEqual({
      id: expect.any(Number),
      state: 'running',
      matching: 4,
      queued: 0,
      sent: 0,
      failed: 0,
      created_at: expect.stringMatching(TIME),
      finished_at: null,
    });
    const done = await waitForRecovery(site, started.body.id, isDone);
    expect(done).toEqual({
      ...started.body,
      state: 'done',
      queued: 4,
      sent: 4,
      finished_at: expect.stringMatching(TIME),
    });
    expect([...arrivals(receiver).keys()].sort()).toEqual(
      preview.sample.map((one) => one.delivery_id).sort()
    );
    expect(receiver.requests).toHaveLength(4);
    const again = arrivals(receiver).get(failing.delivery_id)?.[0];
    expect(again?.body).toBe(failing.request.body);
    expect(
      await countRows(site, "webhook_id = ? AND status = 'failed' AND is_test = ?", [id, false])
    ).toBe(2);

    const used = await refusalOf('', { preview_id: preview.preview_id });
    expect(used.status).toBe(409);
    expect((await inLog(`recovery=${done.id}`)).map((one) => one.state)).toEqual(
      Array(4).fill('sent')
    );
    expect(await inLog(`recovery=${done.id}&state=failed`)).toEqual([]);
    const ofWebhook = await site.request<Page<Delivery>>(
      'GET',
      `/api/fw-crm/v1/webhooks/${id}/deliveries?recovery=${done.id}`
    );
    expect(ofWebhook.body.data).toHaveLength(4);
  });

  it('takes the filters of the log, and deliveries by either id', async () => {
    const { id } = await createWebhook(site, receiver.url, { active: false });
    const { id: other } = await createWebhook(site, receiver.url, { active: false });
    const early = Date.parse('2026-01-02T03:04:05Z');
    await insertFailed(site, id, 2, { error: 'timeout', created_at: early });
    await insertFailed(site, id, 1, {
      event: 'deal.won',
      subject_type: 'deal',
      subject_id: 'd1',
      subject_label: 'One bombe',
    });
    await insertFailing(site, other, 2);
    await insertDeliveries(site, other, 1, { tries: 0 });
    await insertDeliveries(site, other, 1, { status: 'sent', tries: 1 });
    const count = async (filter: Record<string, unknown>) =>
      (await previewRecovery(site, filter)).matching;
    expect(await count({})).toBe(5);
    expect(await count({ webhook: id })).toBe(3);
    expect(await count({ webhook: String(other) })).toBe(2);
    expect(await count({ state: 'failed' })).toBe(3);
    expect(await count({ state: 'failing' })).toBe(2);
    expect(await count({ state: 'sent' })).toBe(0);
    expect(await count({ status: 'pending' })).toBe(2);
    expect(await count({ cause: 'timeout' })).toBe(2);
    expect(await count({ event: 'deal.won' })).toBe(1);
    expect(await count({ subject_type: 'deal' })).toBe(1);
    expect(await count({ subject_type: 'deal', subject_id: 'd1' })).toBe(1);
    expect(await count({ q: 'bombe' })).toBe(1);
    expect(await count({ to: '2026-01-02T03:04:06Z' })).toBe(2);
    expect(await count({ from: '2026-01-02T03:04:06Z' })).toBe(3);
    const some = await listDeliveries(site, id);
    const ids = [some[0]?.id, some[1]?.delivery_id.toUpperCase(), String(some[2]?.id)];
    expect(await count({ ids })).toBe(3);
    expect(await count({ ids, cause: 'timeout' })).toBe(2);
    const byWebhook = (await previewRecovery(site, {})).by_webhook;
    expect(byWebhook).toEqual([
      { webhook_id: id, count: 3 },
      { webhook_id: other, count: 2 },
    ]);
    expect((await previewRecovery(site, { cause: 'dns' })).oldest_at).toBeNull();
  });

  it(`has at most ${AT_MOST} queued and untried, pauses, resumes and ends`, async () => {
    const { id } = await createWebhook(site, receiver.url);
    await insertFailed(site, id, 150);
    let hold = true;
    const waiting: (() => void)[] = [];
    receiver.respond(async () => {
      if (hold) await new Promise<void>((resolve) => waiting.push(resolve));
      return { status: 200 };
    });
    const { id: recovery } = await startRecovery(site, { filter: { webhook: id } });
    await waitForRecovery(site, recovery, ({ queued }) => queued === AT_MOST);
    await receiver.waitFor(1);
    expect(await countRows(site, "webhook_id = ? AND status = 'pending'", [id])).toBe(AT_MOST);
    const paused = await control(site, recovery, 'pause');
    expect([paused.status, paused.body.state]).toEqual([200, 'paused']);
    hold = false;
    for (const go of waiting) go();
    const tried = await waitForRecovery(site, recovery, ({ sent }) => sent === AT_MOST);
    expect(tried).toMatchObject({ state: 'paused', queued: AT_MOST, finished_at: null });
    await receiver.settle(300);
    expect(receiver.requests).toHaveLength(AT_MOST);
    expect((await control(site, recovery, 'pause')).status).toBe(200);
    const resumed = await control(site, recovery, 'resume');
    expect([resumed.status, resumed.body.state]).toEqual([200, 'running']);
    const done = await waitForRecovery(site, recovery, isDone);
    expect(done).toMatchObject({ matching: 150, queued: 150, sent: 150, failed: 0 });
    expect(receiver.requests).toHaveLength(150);
    expect(arrivals(receiver).size).toBe(150);
    for (const action of ['pause', 'resume', 'cancel'] as const) {
      expect((await control(site, recovery, action)).status).toBe(409);
    }
  });

  it('sends the oldest first', async () => {
    const { id } = await createWebhook(site, receiver.url);
    const at = Date.now() - 1_000_000;
    for (const age of [3, 1, 2]) {
      await insertFailed(site, id, AT_MOST, { created_at: at - age * 1000 });
    }
    const oldest = (await deliveryIds(site, id)).slice(0, AT_MOST);
    const { id: recovery } = await startRecovery(site, { filter: { webhook: id } });
    await receiver.waitFor(AT_MOST / 2);
    await control(site, recovery, 'cancel');
    const first = receiver.requests.slice(0, AT_MOST / 2);
    expect(
      first.filter(({ headers }) => !oldest.includes(headers['x-service-delivery'] ?? ''))
    ).toEqual([]);
  });

  it('ends where deliveries or their webhook are gone meanwhile', async () => {
    const { id: off } = await createWebhook(site, receiver.url, { active: false });
    const { id } = await createWebhook(site, receiver.url);
    await insertFailed(site, off, 20);
    await insertFailed(site, id, 2);
    const { id: recovery } = await startRecovery(site, { filter: {} });
    await waitForRecovery(site, recovery, ({ sent }) => sent === 2);
    await removeWebhook(site, off);
    const done = await waitForRecovery(site, recovery, isDone);
    expect(done).toMatchObject({ matching: 22, queued: 2, sent: 2, failed: 0 });
  });

  it('removes old previews and recoveries with the log', async () => {
    const { id } = await startRecovery(site, { filter: { cause: 'dns' } });
    await waitForRecovery(site, id, isDone);
    await previewRecovery(site, {});
    const old = Date.now() - 40 * 86_400_000;
    await sql(site, 'UPDATE switchboard_recoveries SET finished_at = ? WHERE id = ?', [old, id]);
    await sql(site, "UPDATE switchboard_recoveries SET created_at = ? WHERE state = 'preview'", [
      old,
    ]);
    await site.evaluate(async ({ strapi }) => {
      const job = strapi.cron.jobs.find(
        ({ name }: { name: string }) => name === 'switchboardDeliveryRetention'
      );
      await job.job.invoke(new Date());
    });
    await waitFor(async () => (await site.request('GET', `${RECOVERIES}/${id}`)).status === 404);
    const left = await sql(site, "SELECT id FROM switchboard_recoveries WHERE state = 'preview'");
    expect(left).toEqual([]);
  });

  itOnce(database)(
    'goes on where it was after its process is killed, and sends nothing twice',
    async () => {
      const { id } = await createWebhook(site, receiver.url);
      await insertFailed(site, id, 160);
      await insertFailing(site, id, 160);
      let index = 0;
      receiver.respond(async () => {
        index += 1;
        return { status: index % 5 === 0 ? 500 : 200, delayMs: 5 };
      });
      const { id: recovery } = await startRecovery(site, { filter: { webhook: id } });
      await receiver.waitFor(150);
      await site.kill();
      await endLeases(site);
      const underWay = receiver.requests.length;
      await site.restart();
      const done = await waitForRecovery(site, recovery, isDone, 120_000);
      expect(done).toMatchObject({ matching: 320, queued: 320 });
      expect(done.sent + done.failed).toBe(320);
      await receiver.settle(300);
      const posts = arrivals(receiver);
      expect(posts.size).toBe(320);
      const twice = [...posts.values()].filter((all) => all.length > 1);
      // What the killed process had not recorded is sent again, and nothing else.
      expect(twice.length).toBeLessThanOrEqual(AT_MOST);
      expect(underWay).toBeLessThan(320);
      expect(
        await countRows(site, "webhook_id = ? AND status = 'sent'", [id])
      ).toBeGreaterThanOrEqual(done.sent);
    },
    240_000
  );

  // Of two processes on one SQLite file one may find it locked.
  if (database !== 'sqlite') {
    it('is worked on by two processes, and every delivery is sent once', async () => {
      const other = await site.sibling();
      try {
        const { id } = await createWebhook(site, receiver.url);
        await insertFailed(site, id, 250);
        const { id: recovery } = await startRecovery(other, { filter: { webhook: id } });
        let most = 0;
        let done = await getRecovery(site, recovery);
        for (; !isDone(done); done = await getRecovery(site, recovery)) {
          most = Math.max(most, done.queued - done.sent - done.failed);
          await sleep(20);
        }
        expect(done).toMatchObject({ matching: 250, queued: 250, sent: 250, failed: 0 });
        expect(most).toBeLessThanOrEqual(AT_MOST);
        expect(receiver.requests).toHaveLength(250);
        expect(arrivals(receiver).size).toBe(250);
      } finally {
        await other.stop();
      }
    }, 180_000);
  }

  // What follows is of the rules of a recovery, and has no statement that is not in the above.
  if (!anyDatabase().includes(database)) return;

  it('begins the schedule of a failed one anew, and uses up none of a failing one', async () => {
    receiver.respond({ status: 500 });
    const { id } = await createWebhook(site, receiver.url);
    await insertFailed(site, id, 1);
    await insertFailing(site, id, 1);
    const [before] = await listDeliveries(site, id, '?state=failing');
    const { id: recovery } = await startRecovery(site, { filter: { webhook: id } });
    const done = await waitForRecovery(site, recovery, isDone);
    expect(done).toMatchObject({ matching: 2, queued: 2, sent: 0, failed: 2 });
    const all = await listDeliveries(site, id);
    const anew = all.find(({ tries }) => tries === 8);
    expect(anew).toMatchObject({ state: 'failing', status: 'pending', finished_at: null });
    const pause = Date.parse(anew?.next_attempt_at ?? '') - Date.parse(anew?.attempts[0]?.at ?? '');
    expect(Math.round(pause / 10_000)).toBe(6);
    const ahead = all.find(({ id: row }) => row === before?.id);
    expect(ahead).toMatchObject({ tries: 3, next_attempt_at: before?.next_attempt_at });
    const [row] = await sql<{ extra_tries: number }>(
      site,
      'SELECT extra_tries FROM switchboard_deliveries WHERE id = ?',
      [ahead?.id]
    );
    expect(Number(row?.extra_tries)).toBe(1);
  });

  it.each([
    ['neither', '', {}, ['filter', 'preview_id']],
    ['both', '', { filter: {}, preview_id: 'x' }, ['filter', 'preview_id']],
    ['a filter that is none', '', { filter: 7 }, ['filter']],
    ['null', '', { filter: null }, ['filter']],
    ['a key that is no filter', '', { filter: { webhok: 1 } }, ['filter.webhok']],
    ['an unknown state', '', { filter: { state: 'lost' } }, ['filter.state']],
    ['no time', '', { filter: { from: 'yesterday' } }, ['filter.from']],
    ['no id of a webhook', '', { filter: { webhook: -1 } }, ['filter.webhook']],
    ['no ids', '', { filter: { ids: [] } }, ['filter.ids']],
    ['too many ids', '', { filter: { ids: Array(501).fill(1) } }, ['filter.ids']],
    ['an id that is none', '', { filter: { ids: [1, 'x'] } }, ['filter.ids.1']],
    ['a preview of nothing', '/preview', {}, ['filter']],
    ['a preview id that is none', '', { preview_id: 7 }, ['preview_id']],
  ])('refuses %s', async (_what, path, body, fields) => {
    expect(await refusalOf(path, body)).toEqual({ status: 400, fields });
  });

  it('knows no recovery that there is not', async () => {
    expect((await refusalOf('', { preview_id: 'unknown' })).status).toBe(404);
    const { preview_id: preview } = await previewRecovery(site, {});
    const [row] = await sql<{ id: number }>(
      site,
      'SELECT id FROM switchboard_recoveries WHERE token = ?',
      [preview]
    );
    for (const id of [row?.id, 2_000_000_000, 'x']) {
      expect((await site.request('GET', `${RECOVERIES}/${id}`)).status).toBe(404);
      expect((await site.request('POST', `${RECOVERIES}/${id}/pause`)).status).toBe(404);
    }
  });

  it('leaves what was queued when it is cancelled', async () => {
    const { id } = await createWebhook(site, receiver.url);
    await insertFailed(site, id, 150);
    let hold = true;
    receiver.respond(async () => {
      await waitFor(() => !hold);
      return { status: 200 };
    });
    const { id: recovery } = await startRecovery(site, { filter: { webhook: id } });
    await waitForRecovery(site, recovery, ({ queued }) => queued === AT_MOST);
    const cancelled = await control(site, recovery, 'cancel');
    expect(cancelled.status).toBe(200);
    expect(cancelled.body).toMatchObject({
      state: 'cancelled',
      queued: AT_MOST,
      finished_at: expect.stringMatching(TIME),
    });
    hold = false;
    const ended = await waitForRecovery(site, recovery, ({ sent }) => sent === AT_MOST);
    expect(ended).toMatchObject({ state: 'cancelled', matching: 150 });
    await receiver.settle(300);
    expect(receiver.requests).toHaveLength(AT_MOST);
    expect((await control(site, recovery, 'resume')).status).toBe(409);
  });

  it('waits for a webhook that is off, and does not keep others waiting', async () => {
    const { id: off } = await createWebhook(site, receiver.url, { active: false });
    const { id } = await createWebhook(site, receiver.url);
    await insertFailed(site, off, 150, { created_at: Date.now() - 60_000 });
    await insertFailed(site, id, 150);
    const { id: recovery } = await startRecovery(site, { filter: {} });
    const half = await waitForRecovery(site, recovery, ({ sent }) => sent === 150);
    expect(half).toMatchObject({ state: 'running', matching: 300, queued: 150 });
    expect(await countRows(site, "webhook_id = ? AND status = 'failed'", [off])).toBe(150);
    await updateWebhook(site, off, { active: true });
    const done = await waitForRecovery(site, recovery, isDone);
    expect(done).toMatchObject({ queued: 300, sent: 300 });
  });

  it('shares what is under way among webhooks', async () => {
    const slow = await createWebhook(site, `${receiver.url}slow`);
    const quick = await createWebhook(site, `${receiver.url}quick`);
    // More than may be under way, all of them older than the others.
    await insertFailed(site, slow.id, 120, { created_at: Date.now() - 60_000 });
    await insertFailed(site, quick.id, 40);
    let release = (): void => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    receiver.respond(async ({ path }) => {
      if (path === '/slow') await released;
      return { status: 200 };
    });
    const { id: recovery } = await startRecovery(site, { filter: {} });
    await waitForRecovery(site, recovery, ({ sent }) => sent === 40);
    release();
    expect(await waitForRecovery(site, recovery, isDone)).toMatchObject({ sent: 160 });
  });

  it('is not held up by what waits for another of its record', async () => {
    receiver.respond(({ json }) => ({ status: json.data < 140 ? 500 : 200 }));
    const { id } = await createWebhook(site, receiver.url, { ordering: 'by_record' });
    const of = (subject: string, at: number) => ({
      subject_type: 'contact',
      subject_id: subject,
      created_at: at,
    });
    const at = Date.now() - 60_000;
    await insertFailed(site, id, 140, of('1', at));
    const other = { data: 200 };
    await insertFailed(site, id, 1, { ...of('2', at + 1000), body: JSON.stringify(other) });
    const { id: recovery } = await startRecovery(site, { filter: { webhook: id } });
    await receiver.waitFor(1, 60_000, ({ json }) => json.data === 200);
    const running = await waitForRecovery(site, recovery, ({ sent }) => sent === 1);
    expect(running).toMatchObject({ state: 'running', matching: 141, queued: 141, failed: 1 });
    expect(receiver.requests).toHaveLength(2);
    await control(site, recovery, 'cancel');
  });

  it('is not held up by what it has queued of a webhook that is paused since', async () => {
    receiver.respond({ status: 429, headers: { 'retry-after': '3600' } });
    const { id: slow } = await createWebhook(site, receiver.url, { name: 'slow' });
    await insertFailed(site, slow, 150);
    const { id: recovery } = await startRecovery(site, { filter: { state: 'failed' } });
    await waitForRecovery(site, recovery, ({ queued }) => queued === AT_MOST);
    const other = await createWebhook(site, `${receiver.url}other`, { active: false });
    await insertFailed(site, other.id, 3);
    receiver.respond({});
    await site.evaluate(
      async ({ strapi }, id, webhook) => {
        const { connection } = strapi.db;
        const rows = await connection('switchboard_deliveries').where({ webhook_id: webhook });
        const items = rows.map((row: { id: number; created_at: number }) => ({
          ...{ recovery_id: id, ref: row.id, webhook_id: webhook, at: row.created_at },
          ...{ delivery_id: row.id, state: 'waiting', tries: null },
        }));
        await connection('switchboard_recovery_items').insert(items);
      },
      recovery,
      other.id
    );
    await updateWebhook(site, other.id, { active: true });
    await receiver.waitFor(3, 60_000, ({ path }) => path === '/other');
    await control(site, recovery, 'cancel');
  });

  it('goes on beside one that fails', async () => {
    await sql(
      site,
      "INSERT INTO switchboard_recoveries (token, kind, state, filter, boundary, matching, queued, sent, failed, created_at, moved_at, due_at) VALUES ('broken', 'deliveries', 'running', '{', 1, 0, 0, 0, 0, 1, 1, 1)"
    );
    const { id } = await createWebhook(site, receiver.url);
    await insertFailed(site, id, 3);
    const { id: recovery } = await startRecovery(site, { filter: { webhook: id } });
    const done = await waitForRecovery(site, recovery, isDone);
    expect(done).toMatchObject({ queued: 3, sent: 3 });
    await sql(site, "DELETE FROM switchboard_recoveries WHERE token = 'broken'");
  });

  it('lists recoveries, the newest first, and shows the same to the screens', async () => {
    const first = await startRecovery(site, { filter: { cause: 'dns' } });
    const second = await startRecovery(site, { filter: { cause: 'dns' } });
    await waitForRecovery(site, second.id, isDone);
    await waitForRecovery(site, first.id, isDone);
    const { body } = await site.request<Page<Recovery>>('GET', `${RECOVERIES}?per_page=2`);
    expect(body.data.map(({ id }) => id)).toEqual([second.id, first.id]);
    expect(body.meta.pagination).toMatchObject({ page: 1, per_page: 2 });
    const screen = await site.request('GET', `/switchboard/webhook-recoveries/${first.id}`);
    expect(screen.body).toEqual({ data: await getRecovery(site, first.id) });
    const page = await site.request('GET', '/switchboard/webhook-recoveries?per_page=2');
    expect(page.body).toEqual(body);
    const preview = await site.request('POST', '/switchboard/webhook-recoveries/preview', {
      body: { filter: { cause: 'dns' } },
    });
    expect([preview.status, preview.body.data.matching]).toEqual([200, 0]);
    const started = await site.request('POST', '/switchboard/webhook-recoveries', {
      body: { preview_id: preview.body.data.preview_id },
    });
    expect([started.status, started.body.data.matching]).toEqual([201, 0]);
  });
});
