import { describeEach, serverDatabases } from '../support/databases';
import { startReceiver, type Receiver } from '../support/receiver';
import { startSite, type Site } from '../support/site';

/** Writers that come at once, in orders that cross: a deadlock's victim is run again, not answered 500. */

jest.setTimeout(300_000);

const BASE = '/api/fw-crm/v1';
const WRITERS = 16;
const ROUNDS = 2;
/** Several writers come with each. */
const ADDRESSES = 8;

describeEach(serverDatabases(), 'many writers of the same records', (database) => {
  let site: Site;
  let receiver: Receiver;
  let contacts: string[];
  let tags: string[];
  let deals: string[];
  let webhook: number;

  const made = async (path: string, body: unknown): Promise<string> => {
    const answer = await site.request('POST', `${BASE}${path}`, { body });
    expect(answer.status).toBe(201);
    return answer.body.id;
  };

  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({ database, options: { webhooks: { dispatch: false } } });
    const body = { name: 'r', url: receiver.url, events: ['*'] };
    webhook = (await site.request('POST', `${BASE}/webhooks`, { body })).body.id;
    const four = ['a', 'b', 'c', 'd'];
    contacts = await Promise.all(
      four.map((name) => made('/contacts', { email: `${name}@example.test` }))
    );
    tags = await Promise.all(four.map((name) => made('/tags', { name: `tag ${name}` })));
    deals = await Promise.all(four.map((name) => made('/deals', { title: `deal ${name}` })));
  }, 180_000);

  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  });

  const rows = async (statement: string): Promise<Record<string, unknown>[]> =>
    site.control('sql', { statement });

  it('are all answered below 500, and what is sent is what came of it', async () => {
    const answers: { status: number; text: string; what: string }[] = [];
    const send = async (method: string, path: string, body?: unknown) => {
      const { status, text } = await site.request(method, `${BASE}${path}`, { body });
      answers.push({ status, text: status < 500 ? '' : text, what: `${method} ${path}` });
    };
    const turned = <T>(list: readonly T[], by: number): T[] => {
      const start = by % list.length;
      const round = [...list.slice(start), ...list.slice(0, start)];
      return by % 2 === 0 ? round : round.reverse();
    };
    const writer = async (index: number) => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const by = index + round;
        const [contact, other] = turned(contacts, by);
        await send('PATCH', `/contacts/${contact}`, { tags: turned(tags, by).slice(0, 3) });
        await send('POST', `/contacts/${other}/tags/${tags[by % 4]}`);
        await send('PATCH', `/deals/${deals[by % 4]}`, { contact_id: contact, value: by });
        await send('DELETE', `/contacts/${other}/tags/${tags[(by + 1) % 4]}`);
        await send('POST', '/contacts', {
          email: `new-${(index + round) % ADDRESSES}@example.test`,
        });
        await send('PATCH', `/webhooks/${webhook}`, { name: `writer ${index}` });
      }
    };
    await Promise.all(Array.from({ length: WRITERS }, (_none, index) => writer(index)));
    expect(answers.filter(({ status }) => status >= 500)).toEqual([]);
    expect(answers).toHaveLength(WRITERS * ROUNDS * 6);

    // A contact was made once for each 201, and spoke once.
    const created = answers.filter(
      ({ status, what }) => status === 201 && what.endsWith('/contacts')
    );
    expect(created).toHaveLength(ADDRESSES);
    const spoken = await rows(
      "select body from switchboard_deliveries where event = 'contact.created'"
    );
    expect(spoken).toHaveLength(4 + ADDRESSES);
    // A tag is on a contact as often as it was told to have been put there, less taken off.
    const told = await rows(
      "select event, body from switchboard_deliveries where event in ('contact.tagged', 'contact.untagged')"
    );
    const balance = new Map<string, number>();
    for (const { event, body } of told) {
      const { data } = JSON.parse(String(body));
      const key = `${data.contact.id} ${data.tag.id}`;
      balance.set(key, (balance.get(key) ?? 0) + (event === 'contact.tagged' ? 1 : -1));
    }
    const held = new Set<string>();
    for (const contact of contacts) {
      const answer = await site.request('GET', `${BASE}/tags?contact_id=${contact}`);
      for (const { id } of answer.body.data) held.add(`${contact} ${id}`);
    }
    const said = [...balance].filter(([, count]) => count !== 0);
    expect(new Map(said)).toEqual(new Map([...held].map((key) => [key, 1])));
  });

  it('so with the admin’s routes', async () => {
    const items: number[] = [];
    for (const sku of ['s1', 's2', 's3']) {
      const item = await site.request('POST', '/switchboard/items', { body: { sku } });
      items.push(item.body.data.id);
    }
    const statuses: number[] = [];
    const send = async (method: string, path: string, body?: unknown) =>
      statuses.push((await site.request(method, path, { body })).status);
    await Promise.all(
      Array.from({ length: WRITERS }, async (_none, index) => {
        const item = items[index % 3];
        await send('PUT', `/switchboard/items/${item}`, { gtin: `g${index % 5}` });
        await send('POST', `/switchboard/items/${item}/adjust`, { quantity: 1 });
        await send('PUT', '/switchboard/modules', { companies: index % 2 === 0 });
        await send('POST', '/switchboard/locations', { name: 'l', code: `c${index % 7}` });
        await send('POST', '/switchboard/application-passwords', { name: `p${index}` });
      })
    );
    expect(statuses.filter((status) => status >= 500)).toEqual([]);
    const levels = await site.request('GET', '/switchboard/levels');
    const sum = levels.body.data.reduce(
      (total: number, { quantity }: { quantity: number }) => total + quantity,
      0
    );
    expect(sum).toBe(WRITERS);
  });
});
