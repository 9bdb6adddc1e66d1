import { anyDatabase, describeEach } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { admin, createItem, createTill, eventOf, settled, type Till } from './pos-till';

const UNKNOWN = 999_999;

describeEach(anyDatabase(), 'the admin’s lists of connections and events', (database) => {
  let site: Site;
  let till: Till;
  let other: Till;
  const events: number[] = [];

  beforeAll(async () => {
    site = await startSite({ database });
    till = await createTill(site);
    other = await createTill(site, { name: 'Till 2' });
    await createItem(site, 'MUG', 10);
    for (const sku of ['MUG', 'NEW', 'MUG', 'MUG', 'MUG']) {
      const { body } = await till.sale([[sku, 1]]);
      events.push(body.event_id);
    }
    for (const id of events) {
      await settled(site, id, id === events[1] ? 'needs_mapping' : 'applied');
    }
  }, 120_000);
  afterAll(() => site?.stop(), 60_000);

  const list = async (path: string) => (await site.request('GET', `/switchboard${path}`)).body;
  const idsOf = ({ data }: { data: { id: number }[] }) => data.map(({ id }) => id);

  it('go in pages: connections in the order they were made, events newest first', async () => {
    const connections = await list('/connections?per_page=1&page=2');
    expect(idsOf(connections)).toEqual([other.id]);
    expect(connections.meta.pagination).toEqual({ page: 2, per_page: 1, page_count: 2, total: 2 });
    const page = await list('/pos-events?per_page=2&page=2');
    expect(idsOf(page)).toEqual([events[2], events[1]]);
    expect(page.meta.pagination).toEqual({ page: 2, per_page: 2, page_count: 3, total: 5 });
    expect(page.data[0].connection).toMatchObject({ id: till.id, name: 'Till 1' });
  });

  it('count what a filter leaves', async () => {
    const waiting = await list('/pos-events?state=needs_mapping');
    expect(idsOf(waiting)).toEqual([events[1]]);
    expect(waiting.meta.pagination.total).toBe(1);
    const none = await list(`/pos-events?connection=${other.id}`);
    expect([none.data, none.meta.pagination.page_count]).toEqual([[], 0]);
  });

  it('are short where a summary is asked for', async () => {
    const names = ['Front', 'Back', 'Cellar', 'Attic'];
    const locations = names.map((name) => ({ ref: name, location: name.toLowerCase() }));
    for (const { ref, location } of locations) {
      await admin(site, 'POST', '/locations', { name: ref, code: location });
    }
    await admin(site, 'PUT', `/connections/${other.id}`, { locations }, 200);
    const [, connection] = (await list('/connections?view=summary')).data;
    expect(connection).toMatchObject({ id: other.id, name: 'Till 2', location_count: 4 });
    expect(connection.locations).toHaveLength(3);
    expect(names).toEqual(expect.arrayContaining(connection.locations));
    expect(Object.keys(connection)).not.toEqual(expect.arrayContaining(['scopes']));

    const [event] = (await list('/pos-events?view=summary&state=needs_mapping')).data;
    expect(event).toMatchObject({
      id: events[1],
      connection: { id: till.id, name: 'Till 1' },
      waiting: [{ line: 0, sku: 'NEW' }],
    });
    expect(event).not.toHaveProperty('error');

    const whole = (await list('/webhooks/events')).data;
    const short = (await list('/webhooks/events?view=summary')).data;
    expect(short.length).toBe(whole.length);
    for (const [at, { schema, example, ...rest }] of whole.entries()) {
      expect([typeof schema, example === undefined]).toEqual(['object', false]);
      expect(short[at]).toEqual(rest);
    }
    expect((await site.request('GET', '/switchboard/connections?view=tiny')).status).toBe(400);
  });

  it('show an event, and have it processed again', async () => {
    expect(await eventOf(site, events[0]!)).toMatchObject({ id: events[0], state: 'applied' });
    const again = await admin(site, 'POST', `/pos-events/${events[1]}/reprocess`, undefined, 200);
    expect(again).toMatchObject({ id: events[1], state: 'needs_mapping' });
  });

  it.each([
    ['GET', `/connections/${UNKNOWN}`, 'Connection'],
    ['PUT', `/connections/${UNKNOWN}`, 'Connection'],
    ['DELETE', `/connections/${UNKNOWN}`, 'Connection'],
    ['POST', `/connections/${UNKNOWN}/secret`, 'Connection'],
    ['POST', `/connections/${UNKNOWN}/revoke`, 'Connection'],
    ['GET', `/pos-events/${UNKNOWN}`, 'Event'],
    ['POST', `/pos-events/${UNKNOWN}/reprocess`, 'Event'],
  ])('answer %s %s with 404', async (method, path, what) => {
    const body = method === 'PUT' ? { name: 'x' } : undefined;
    const answer = await site.request(method, `/switchboard${path}`, { body });
    expect(answer.status).toBe(404);
    expect(answer.body.error).toMatchObject({
      name: 'NotFoundError',
      message: `${what} not found`,
    });
  });

  it('forget a connection that was deleted', async () => {
    expect((await site.request('DELETE', `/switchboard/connections/${other.id}`)).status).toBe(204);
    expect(idsOf(await list('/connections'))).toEqual([till.id]);
    expect((await site.request('GET', `/switchboard/connections/${other.id}`)).status).toBe(404);
  });
});
