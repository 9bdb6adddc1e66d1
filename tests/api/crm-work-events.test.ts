import { describeEach, anyDatabase } from '../support/databases';
import type { Site } from '../support/site';
import { type Ask, type EventLog, inCode, type LoggedEvent, useWatchedSite } from './crm-helpers';

const KINDS = {
  company: { path: 'companies', create: { name: 'Firm' }, change: { phone: '1' } },
  deal: { path: 'deals', create: { title: 'Deal' }, change: { value: 2.5 } },
  task: { path: 'tasks', create: { title: 'Task' }, change: { description: 'x' } },
} as const;
type Kind = keyof typeof KINDS;

describeEach(anyDatabase(), 'events of companies, deals and tasks', (database) => {
  let site: Site;
  let log: EventLog;
  let api: Ask;
  let admin: Ask;
  useWatchedSite(database, (watched) => {
    ({ site, log, api, admin } = watched);
  });

  const made = async (kind: Kind, values: object = {}) => {
    const { path, create } = KINDS[kind];
    const { body } = await api('POST', `/${path}`, { ...create, ...values });
    await log.take();
    return body;
  };
  const read = async (kind: Kind, id: string) =>
    (await api('GET', `/${KINDS[kind].path}/${id}`)).body;

  type Trigger = (kind: Kind, id: string, data: object) => Promise<unknown>;
  /** Attributes behind the keys `status` are named after their kind. */
  const attributes = (kind: Kind, { status, ...rest }: { status?: string }) => ({
    ...rest,
    ...(status && { [`${kind}_status`]: status }),
  });
  const CREATE: Record<string, (kind: Kind, data: object) => Promise<unknown>> = {
    'the content API': (kind, data) => api('POST', `/${KINDS[kind].path}`, data),
    'the content manager': (kind, data) => admin('POST', kind, attributes(kind, data)),
    'the document service': (kind, data) => inCode(site, kind).create(attributes(kind, data)),
    'query create': (kind, data) =>
      inCode(site, kind).query('create', { data: attributes(kind, data) }),
    'query createMany': (kind, data) =>
      inCode(site, kind).query('createMany', { data: [attributes(kind, data)] }),
  };
  const UPDATE: Record<string, Trigger> = {
    'the content API': (kind, id, data) => api('PATCH', `/${KINDS[kind].path}/${id}`, data),
    'the content manager': (kind, id, data) =>
      admin('PUT', `${kind}/${id}`, attributes(kind, data)),
    'the document service': (kind, id, data) =>
      inCode(site, kind).update(id, attributes(kind, data)),
    'query update': (kind, id, data) =>
      inCode(site, kind).query('update', {
        where: { documentId: id },
        data: attributes(kind, data),
      }),
    'query updateMany': (kind, id, data) =>
      inCode(site, kind).query('updateMany', {
        where: { documentId: id },
        data: attributes(kind, data),
      }),
  };
  const DELETE: Record<string, (kind: Kind, id: string) => Promise<unknown>> = {
    'the content API': (kind, id) => api('DELETE', `/${KINDS[kind].path}/${id}`),
    'the content manager': (kind, id) => admin('DELETE', `${kind}/${id}`),
    'the document service': (kind, id) => inCode(site, kind).remove(id),
    'query delete': (kind, id) => inCode(site, kind).query('delete', { where: { documentId: id } }),
    'query deleteMany': (kind, id) =>
      inCode(site, kind).query('deleteMany', { where: { documentId: id } }),
  };

  describe.each(Object.keys(CREATE))('through %s', (way) => {
    it.each(['company', 'deal', 'task'] as const)('%s.created, once, whole', async (kind) => {
      await CREATE[way]!(kind, KINDS[kind].create);
      const events = await log.take();
      expect(events).toEqual([
        { event: `${kind}.created`, data: await read(kind, events[0]?.data.id) },
      ]);
    });

    it('what is created closed is told as closed', async () => {
      await CREATE[way]!('deal', { title: 'Won', status: 'won' });
      await CREATE[way]!('task', { title: 'Done', status: 'done', outcome: 'well' });
      const events = await log.take();
      const [deal, task] = [events[0]?.data, events[2]?.data];
      expect(deal.dates.closed_at).not.toBeNull();
      expect(task.dates.completed_at).not.toBeNull();
      expect(events).toEqual([
        { event: 'deal.created', data: deal },
        { event: 'deal.won', data: deal },
        { event: 'task.created', data: task },
        { event: 'task.completed', data: { ...task, outcome: 'well' } },
      ]);
    });
  });

  describe.each(Object.keys(UPDATE))('through %s', (way) => {
    const after = async (kind: Kind, values: object, change: object) => {
      const { id } = await made(kind, values);
      await UPDATE[way]!(kind, id, change);
      const events = await log.take();
      return { events, now: await read(kind, id) };
    };
    const quiet = async (kind: Kind, id: string, change: object) => {
      await UPDATE[way]!(kind, id, change);
      expect(await log.take()).toEqual([]);
    };

    it('company.updated carries the company, and a no-op says nothing', async () => {
      const { events, now } = await after('company', {}, { phone: '1', employees: 3 });
      expect(events).toEqual([{ event: 'company.updated', data: now }]);
      await quiet('company', now.id, { phone: '1', employees: 3 });
    });

    it('deal.updated carries the deal plus changed', async () => {
      const { events, now } = await after('deal', {}, { value: 99.95, title: 'Bigger' });
      expect(events).toEqual([
        { event: 'deal.updated', data: { ...now, changed: ['title', 'value'] } },
      ]);
      await quiet('deal', now.id, { value: 99.95 });
    });

    it('deal.won comes beside deal.updated, once', async () => {
      const { events, now } = await after('deal', {}, { status: 'won' });
      expect(events).toEqual([
        { event: 'deal.updated', data: { ...now, changed: ['status'] } },
        { event: 'deal.won', data: now },
      ]);
      expect(now.dates.closed_at).not.toBeNull();
      await quiet('deal', now.id, { status: 'won' });
    });

    it('deal.lost carries the reason', async () => {
      const { events, now } = await after('deal', {}, { status: 'lost', lost_reason: 'Price' });
      expect(events).toEqual([
        { event: 'deal.updated', data: { ...now, changed: ['status', 'lost_reason'] } },
        { event: 'deal.lost', data: { ...now, reason: 'Price' } },
      ]);
    });

    it('a deal that is open again was not closed', async () => {
      const { events, now } = await after('deal', { status: 'won' }, { status: 'open' });
      expect(events).toEqual([{ event: 'deal.updated', data: { ...now, changed: ['status'] } }]);
      expect(now.dates.closed_at).toBeNull();
    });

    it('task.completed carries the outcome; other changes of a task are no events', async () => {
      const { events, now } = await after('task', {}, { status: 'done', outcome: 'Renewed' });
      expect(events).toEqual([{ event: 'task.completed', data: { ...now, outcome: 'Renewed' } }]);
      await quiet('task', now.id, { description: 'x', status: 'done' });
    });
  });

  describe.each(Object.keys(DELETE))('through %s', (way) => {
    it('company.deleted carries the company as it was', async () => {
      const company = await made('company', { fields: { a: 1 } });
      await DELETE[way]!('company', company.id);
      expect(await log.take()).toEqual([{ event: 'company.deleted', data: company }]);
    });

    it('deal.deleted carries id and title', async () => {
      const { id } = await made('deal');
      await DELETE[way]!('deal', id);
      expect(await log.take()).toEqual([{ event: 'deal.deleted', data: { id, title: 'Deal' } }]);
    });
  });

  describe('deal.stage_changed', () => {
    const stage = async (name: string) => (await api('POST', '/deal-stages', { name })).body.id;
    const moves = (events: LoggedEvent[]) =>
      events.map(({ event, data }) =>
        event === 'deal.stage_changed'
          ? [event, data.from_stage_id, data.to_stage_id]
          : [event, data.changed]
      );

    it('comes from the deal, from the stage, and when the stage is deleted', async () => {
      const [one, two] = [await stage('One'), await stage('Two')];
      const { id } = await made('deal', { stage_id: one });
      await api('PATCH', `/deals/${id}`, { stage_id: two });
      await inCode(site, 'deal-stage').update(one, { deals: { connect: [id] } });
      await api('DELETE', `/deal-stages/${one}`);
      const events = await log.take();
      const updated = ['deal.updated', ['stage_id']];
      expect(moves(events)).toEqual([
        updated,
        ['deal.stage_changed', one, two],
        updated,
        ['deal.stage_changed', two, one],
        updated,
        ['deal.stage_changed', one, null],
      ]);
      expect(events.at(-1)?.data.deal).toEqual(await read('deal', id));
    });

    it('comes with the others when one change moves and wins a deal', async () => {
      const [one, two] = [await stage('One'), await stage('Two')];
      const { id } = await made('deal', { stage_id: one });
      await api('PATCH', `/deals/${id}`, { stage_id: two, status: 'won' });
      expect(moves(await log.take())).toEqual([
        ['deal.updated', ['status', 'stage_id']],
        ['deal.stage_changed', one, two],
        ['deal.won', undefined],
      ]);
    });
  });

  it('leaves nothing private of an owner in a payload', async () => {
    await made('deal', { owner_id: 1 });
    await api('POST', '/deals', { title: 'Owned', owner_id: 1 });
    const [{ data } = { data: {} }] = await log.take();
    expect(data.owner_id).toBe(1);
    expect(JSON.stringify(data)).not.toMatch(/password|resetPassword|\$2[aby]\$|ada@example/i);
  });

  it('sends no event of a module that is off, and those of the others', async () => {
    const put = (enabled: boolean) =>
      site.request('PUT', '/switchboard/modules', { body: { sales_pipeline: enabled } });
    await put(false);
    await inCode(site, 'deal').create({ title: 'Silent' });
    await inCode(site, 'company').create({ name: 'Loud' });
    const events = await log.take();
    const listed = await api('GET', '/webhooks/events');
    await put(true);
    expect(events.map(({ event }) => event)).toEqual(['company.created']);
    expect(listed.text).not.toContain('deal.won');
  });

  it('keeps one change of ten thousand rows one event each, and memory flat', async () => {
    const growth = await site.evaluate(async ({ strapi }) => {
      const data = Array.from({ length: 10_000 }, (_, n) => ({ email: `bulk${n}@example.test` }));
      const before = process.memoryUsage().heapUsed;
      let peak = before;
      const timer = setInterval(() => {
        peak = Math.max(peak, process.memoryUsage().heapUsed);
      }, 10);
      await strapi.db.query('plugin::switchboard.contact').createMany({ data });
      clearInterval(timer);
      return (peak - before) / 1e6;
    });
    const events = await log.take();
    expect(events).toHaveLength(10_000);
    expect(new Set(events.map(({ data }) => data.email)).size).toBe(10_000);
    // The rows, their bodies and whatever was not collected yet; all bodies at once would be more.
    expect(growth).toBeLessThan(250);
    await inCode(site, 'contact').query('updateMany', { where: {}, data: { phone: '9' } });
    expect(await log.take()).toHaveLength(10_000);
    await inCode(site, 'contact').query('deleteMany', { where: {} });
    expect(await log.take()).toHaveLength(10_000);
  }, 180_000);
});
