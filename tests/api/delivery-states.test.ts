import { adminActionId } from '../../shared/contracts/permissions';
import type { CursorPage, Delivery } from '../../shared/contracts/webhooks';
import { createAdminRole, createAdminUser, createApiToken } from '../support/accounts';
import { describeEach, anyDatabase } from '../support/databases';
import { fixtureNotes, fixtureVersions, startFixture } from '../support/fixtures';
import type { Receiver } from '../support/receiver';
import { type As, type Site } from '../support/site';
import { makePassword } from './access-helpers';
import { LOG, queryOf } from './delivery-finding-support';
import {
  createWebhook,
  insertDeliveries,
  listDeliveries,
  retryDelivery,
  send,
  testWebhook,
  updateWebhook,
  useSiteAndReceiver,
  waitForDelivery,
} from './delivery-support';

const API = '/api/fw-crm/v1';

type Log = CursorPage<Delivery>;

const findIn = async (site: Site, query: Record<string, unknown>): Promise<Delivery[]> =>
  (await site.request<Log>('GET', `${LOG}${queryOf({ limit: 100, ...query })}`)).body.data;

describeEach(anyDatabase(), 'what a delivery says of itself', (database) => {
  let site: Site;
  let receiver: Receiver;
  useSiteAndReceiver({ database, webhooks: { pollSeconds: 1 } }, (made, receiving) => {
    site = made;
    receiver = receiving;
  });

  const made = async (path: string, body: Record<string, unknown>) => {
    const answer = await site.request('POST', `${API}/${path}`, { body });
    expect([path, answer.status]).toEqual([path, 201]);
    return answer.body as { id: string };
  };

  it('is waiting, then failing, then sent, with the time of its first attempt', async () => {
    receiver.respond({ status: 500 });
    const { id } = await createWebhook(site, receiver.url);
    await send(site, 'loyalty.earned', {});
    const failing = await waitForDelivery(site, id, ({ state }) => state === 'failing');
    expect(failing).toMatchObject({ status: 'pending', tries: 1, error: 'http_500' });
    expect(failing.first_attempt_at).toBe(failing.attempts[0]?.at);
    expect((await findIn(site, { state: 'failing' })).map((one) => one.id)).toEqual([failing.id]);
    receiver.respond({ status: 204 });
    const sent = await retryDelivery(site, failing.id);
    expect(sent.body).toMatchObject({
      state: 'sent',
      replayed: false,
      first_attempt_at: failing.first_attempt_at,
    });
    await updateWebhook(site, id, { active: false });
    await insertDeliveries(site, id, 1);
    const [waiting] = await findIn(site, { state: 'waiting' });
    expect(waiting).toMatchObject({ first_attempt_at: null, subject: null, tries: 0 });
    await testWebhook(site, id);
    expect(await findIn(site, { state: 'test' })).toEqual([
      expect.objectContaining({ event: 'ping', subject: null, status: 'sent' }),
    ]);
    expect((await findIn(site, { state: 'sent' })).map((one) => one.id)).toEqual([failing.id]);
  });

  it('names the record it is about, as that was then', async () => {
    const { id: webhook } = await createWebhook(site, receiver.url);
    const contact = await made('contacts', {
      email: 'alan@example.test',
      first_name: 'Alan',
      last_name: 'Turing',
    });
    const company = await made('companies', { name: 'Bletchley Park' });
    const deal = await made('deals', { title: 'One bombe' });
    const task = await made('tasks', { title: 'Call back' });
    const nameless = await made('contacts', { email: 'nobody@example.test' });
    await site.request('PATCH', `${API}/contacts/${contact.id}`, {
      body: { last_name: 'Mathison' },
    });
    await send(site, 'loyalty.earned', { contact: { id: contact.id } });
    await waitForDelivery(site, webhook, ({ event }) => event === 'loyalty.earned');
    const all = await listDeliveries(site, webhook);
    const subjects = all.reverse().map(({ event, subject }) => [event, subject]);
    const alan = { type: 'contact', id: contact.id, label: 'Alan Turing' };
    const nobody = { type: 'contact', id: nameless.id, label: 'nobody@example.test' };
    expect(subjects.filter(([event]) => event !== 'contact.subscribed')).toEqual([
      ['contact.created', alan],
      ['company.created', { type: 'company', id: company.id, label: 'Bletchley Park' }],
      ['deal.created', { type: 'deal', id: deal.id, label: 'One bombe' }],
      ['task.created', { type: 'task', id: task.id, label: 'Call back' }],
      ['contact.created', nobody],
      ['contact.updated', { ...alan, label: 'Alan Mathison' }],
      ['loyalty.earned', null],
    ]);
    const ofAlan = await findIn(site, { subject_type: 'contact', subject_id: contact.id });
    expect(ofAlan.map(({ event }) => event)).toEqual(
      expect.arrayContaining(['contact.updated', 'contact.created'])
    );
    expect(ofAlan.every(({ subject }) => subject?.id === contact.id)).toBe(true);
    expect((await findIn(site, { q: 'alan turing', event: 'contact.created' })).length).toBe(1);
  });

  it('takes a label that no database would take, and cuts a long one', async () => {
    const { id: webhook } = await createWebhook(site, receiver.url, {
      events: ['contact.created'],
    });
    await made('contacts', {
      email: 'long@example.test',
      first_name: '\u{1F600}'.repeat(120),
      last_name: '\u{1F600}'.repeat(120),
    });
    const found = await waitForDelivery(site, webhook, ({ subject }) => subject !== null);
    expect([...found.subject!.label]).toHaveLength(200);
  });

  it('is shown to who may read the log', async () => {
    const { id: webhook } = await createWebhook(site, receiver.url);
    await send(site, 'loyalty.earned', {});
    const [one] = await listDeliveries(site, webhook);
    const paths = [LOG, `${LOG}/${one!.id}`, `${LOG}/causes`];
    const screens = paths.map((path) => path.replace(API, '/switchboard'));
    const statuses = async (as: As, asked = paths): Promise<number[]> => {
      const found: number[] = [];
      for (const path of asked) found.push((await site.request('GET', path, { as })).status);
      return found;
    };
    const custom = (...actions: string[]) =>
      createApiToken(site, {
        type: 'custom',
        permissions: actions.map((action) => `plugin::switchboard.${action}`),
      });
    expect(await statuses({ token: await createApiToken(site, { type: 'read-only' }) })).toEqual([
      200, 200, 200,
    ]);
    expect(await statuses({ token: await custom('deliveries.find') })).toEqual([200, 403, 403]);
    expect(await statuses({ token: await custom('delivery-causes.find') })).toEqual([
      403, 403, 200,
    ]);
    expect(await statuses({ token: await custom('deliveries.findOne') })).toEqual([403, 200, 403]);
    for (const status of await statuses('nobody')) expect([401, 403]).toContain(status);
    const manager = await createAdminUser(site, { role: 'CRM Manager' });
    const { basic } = await makePassword(site, manager);
    expect(await statuses({ basic })).toEqual([200, 200, 200]);
    const asUser = async (...actions: Parameters<typeof adminActionId>[0][]): Promise<As> => {
      const role = await createAdminRole(site, actions.map(adminActionId));
      return { token: (await createAdminUser(site, { role })).token };
    };
    expect(await statuses(await asUser('webhooks.read'), screens)).toEqual([200, 200, 200]);
    expect(await statuses(await asUser('webhooks.update'), screens)).toEqual([403, 403, 403]);
    expect(await statuses('nobody', screens)).toEqual([401, 401, 401]);
  });

  it('is not there while the module is off', async () => {
    const turn = (webhooks: boolean) =>
      site.request('PUT', '/switchboard/modules', { body: { webhooks } });
    await turn(false);
    for (const path of [LOG, `${LOG}/1`, `${LOG}/causes`]) {
      for (const route of [path, path.replace(API, '/switchboard')]) {
        const answer = await site.request('GET', route);
        expect([route, answer.status]).toEqual([route, 404]);
        expect(answer.body.error.message).toMatch(/Webhooks is switched off/);
      }
    }
    await turn(true);
  });
});

describeEach(anyDatabase(), 'the log of an earlier version', (database) => {
  it.each(fixtureVersions())('%s is found in by what its rows say', async (version) => {
    const notes = fixtureNotes(version, database);
    const site = await startFixture(version, {
      database,
      options: { webhooks: { dispatch: false }, pos: { process: false } },
    });
    try {
      const as: As = { token: notes.tokens.full };
      const found = async (query: Record<string, unknown>): Promise<Delivery[]> =>
        (await site.request<Log>('GET', `${LOG}${queryOf({ limit: 100, ...query })}`, { as })).body
          .data;
      const all = await found({});
      expect(all.map((one) => one.delivery_id).sort()).toEqual(
        notes.deliveries.map((one) => one.delivery_id).sort()
      );
      for (const one of all) {
        const note = notes.deliveries.find((it) => it.delivery_id === one.delivery_id)!;
        expect(one.subject).toEqual(note.subject ?? null);
        expect(one.replayed).toBe(note.replayed ?? false);
        if (note.state) expect(one.state).toBe(note.state);
        expect(one.first_attempt_at).toBe(one.attempts[0]?.at ?? null);
        expect(one.first_attempt_at === null).toBe(one.tries === 0);
        if (one.state === 'test') continue;
        const unended = one.tries > 0 ? 'failing' : 'waiting';
        expect(one.state).toBe(one.status === 'pending' ? unended : one.status);
      }
      for (const state of ['waiting', 'failing', 'failed', 'sent', 'test']) {
        const wanted = all.filter((one) => one.state === state);
        expect((await found({ state })).map(({ id }) => id)).toEqual(wanted.map(({ id }) => id));
      }
      const failing = all.filter(({ state }) => state === 'failing');
      const { body } = await site.request('GET', `${LOG}/causes?state=failing`, { as });
      const counts = body.data.map(({ count }: { count: number }) => count);
      expect(counts.reduce((sum: number, one: number) => sum + one, 0)).toBe(failing.length);
      expect(failing).not.toEqual([]);
      const { delivery_id: id } = failing[0]!;
      expect((await site.request('GET', `${LOG}/${id}`, { as })).body.delivery_id).toBe(id);
    } finally {
      await site.stop();
    }
  });
});
