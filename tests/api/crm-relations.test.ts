import { anyDatabase, databases, describeEach } from '../support/databases';
import type { Site } from '../support/site';
import { CRM, type EventLog, useWatchedSite } from './crm-helpers';
import {
  type Channel,
  CHANNELS,
  connect,
  copyWorld,
  PERSON_SOURCES,
  saidOf,
  type TypeName,
  write,
} from './crm-relations-world';

interface Case {
  what: string;
  type: TypeName;
  /** Null: the write makes a new record. */
  record: string | null;
  attribute: string;
  target: string;
  expected: string[];
}

const SEAT_FROM_A_TO_C = [
  'company.updated S1',
  'contact.updated A company_id',
  'contact.updated C company_id',
];
const SEATS_CHANGE_HANDS = [
  'company.updated S1',
  'company.updated S2',
  'contact.updated A company_id',
  'contact.updated B company_id',
];
const KEY_FROM_A_TO_C = [
  'contact.tagged C K1',
  'contact.untagged A K1',
  'contact.updated A fields.keys',
  'contact.updated C fields.keys',
];
const PARTNER_FROM_A_TO_C = [
  'contact.updated A fields.partner',
  'contact.updated C fields.partner',
  'contact.updated X fields.partner_of',
];
const CONTRACT_FROM_D1_TO_D2 = ['deal.updated D1 contact_id', 'deal.updated D2 contact_id'];

const CASES: Case[] = [
  {
    what: 'one to one, from the holder that had none',
    type: 'person',
    record: 'C',
    attribute: 'seat',
    target: 'S1',
    expected: SEAT_FROM_A_TO_C,
  },
  {
    what: 'one to one, from the holder that leaves another one',
    type: 'person',
    record: 'B',
    attribute: 'seat',
    target: 'S1',
    expected: SEATS_CHANGE_HANDS,
  },
  {
    what: 'one to one, by a new holder',
    type: 'person',
    record: null,
    attribute: 'seat',
    target: 'S1',
    expected: ['company.updated S1', 'contact.created new', 'contact.updated A company_id'],
  },
  {
    what: 'one to one, from the other end that was held',
    type: 'seat',
    record: 'S1',
    attribute: 'person',
    target: 'C',
    expected: SEAT_FROM_A_TO_C,
  },
  {
    what: 'one to one, from the other end, both held',
    type: 'seat',
    record: 'S1',
    attribute: 'person',
    target: 'B',
    expected: SEATS_CHANGE_HANDS,
  },
  {
    what: 'one to one, by a new record at the other end',
    type: 'seat',
    record: null,
    attribute: 'person',
    target: 'A',
    expected: ['company.created new', 'company.updated S1', 'contact.updated A company_id'],
  },
  {
    what: 'one to many, from the one',
    type: 'person',
    record: 'C',
    attribute: 'keys',
    target: 'K1',
    expected: KEY_FROM_A_TO_C,
  },
  {
    what: 'one to many, by a new one',
    type: 'person',
    record: null,
    attribute: 'keys',
    target: 'K1',
    expected: [
      'contact.created new',
      'contact.tagged new K1',
      'contact.untagged A K1',
      'contact.updated A fields.keys',
    ],
  },
  {
    what: 'one to many, from one of the many',
    type: 'key',
    record: 'K1',
    attribute: 'person',
    target: 'C',
    expected: KEY_FROM_A_TO_C,
  },
  {
    what: 'one to one within a type, from the holder',
    type: 'person',
    record: 'C',
    attribute: 'partner',
    target: 'X',
    expected: PARTNER_FROM_A_TO_C,
  },
  {
    what: 'one to one within a type, from the other end',
    type: 'person',
    record: 'X',
    attribute: 'partnerOf',
    target: 'C',
    expected: PARTNER_FROM_A_TO_C,
  },
  {
    what: "a deal's, from the deal",
    type: 'contract',
    record: 'D2',
    attribute: 'person',
    target: 'A',
    expected: CONTRACT_FROM_D1_TO_D2,
  },
  {
    what: "a deal's, from the other end",
    type: 'person',
    record: 'A',
    attribute: 'contract',
    target: 'D2',
    expected: CONTRACT_FROM_D1_TO_D2,
  },
  {
    what: 'one to one one way, which takes nothing from anybody',
    type: 'person',
    record: 'C',
    attribute: 'pass',
    target: 'S1',
    expected: ['contact.updated C fields.pass'],
  },
  {
    what: 'what it holds already',
    type: 'person',
    record: 'A',
    attribute: 'seat',
    target: 'S1',
    expected: [],
  },
];

describeEach(databases(), 'a relation that is taken from its holder', (database) => {
  let site: Site;
  let log: EventLog;
  useWatchedSite(
    database,
    (watched) => {
      ({ site, log } = watched);
    },
    { sources: PERSON_SOURCES }
  );

  // The content manager writes by the document service: it has no statement of its own.
  const channels: readonly Channel[] = anyDatabase().includes(database)
    ? CHANNELS
    : CHANNELS.filter((channel) => channel !== 'the content manager');

  const OPERATIONS = ['connect', 'set'] as const;
  // Elsewhere each of them by every other way: what is asked of the database is the same.
  const operationsOf = (channel: Channel) =>
    anyDatabase().includes(database)
      ? OPERATIONS
      : OPERATIONS.filter((_one, at) => at === channels.indexOf(channel) % 2);

  describe.each(channels)('through %s', (channel) => {
    describe.each(operationsOf(channel))('with %s', (operation) => {
      it.each(CASES)('$what', async ({ type, record, attribute, target, expected }) => {
        const world = await copyWorld(site);
        await log.take();
        const relation = { attribute, operation, targets: [world.at(target)] };
        await write(site, channel, type, record === null ? null : world.at(record), relation);
        expect(saidOf(world, await log.take())).toEqual(expected);
      });
    });
  });

  it('is said once for each of several holders', async () => {
    const world = await copyWorld(site);
    await connect(site, 'key', world.at('K2'), 'person', world.at('B'));
    await log.take();
    const targets = [world.at('K1'), world.at('K2')];
    const relation = { attribute: 'keys', operation: 'set', targets } as const;
    await write(site, 'the document service', 'person', world.at('C'), relation);
    expect(saidOf(world, await log.take())).toEqual([
      'contact.tagged C K1',
      'contact.tagged C K2',
      'contact.untagged A K1',
      'contact.untagged B K2',
      'contact.updated A fields.keys',
      'contact.updated B fields.keys',
      'contact.updated C fields.keys',
    ]);
  });

  it('is said of a clone that takes what can have one holder only', async () => {
    const world = await copyWorld(site);
    await log.take();
    await site.control('documents', {
      uid: 'api::person.person',
      method: 'clone',
      params: { documentId: world.at('A').documentId, data: { mail: 'clone@example.test' } },
    });
    const holder = await site.control('query', {
      uid: 'api::key.key',
      method: 'findOne',
      params: { where: { id: world.at('K1').id }, populate: ['person'] },
    });
    expect(holder.person.mail).toBe('clone@example.test');
    const said = saidOf(world, await log.take());
    expect(said).toEqual(
      expect.arrayContaining([
        'contact.created new',
        'contact.tagged new K1',
        'contact.untagged A K1',
        'contact.updated A fields.keys',
      ])
    );
    expect(new Set(said).size).toBe(said.length);
  });

  it('keeps silent when the write that took it is rolled back', async () => {
    const world = await copyWorld(site);
    await log.take();
    const update = {
      op: 'query',
      args: {
        uid: 'api::person.person',
        method: 'update',
        params: { where: { id: world.at('C').id }, data: { seat: world.at('S1').id } },
      },
    };
    await site.control('transaction', { steps: [update], throw: true }).catch(() => null);
    expect(await log.take()).toEqual([]);
  });

  /** How often a write looks for who has a seat before it changes anything. */
  const lookups = (id: number, data: object): Promise<number> =>
    site.evaluate(
      async ({ strapi }, where, values) => {
        const statements: string[] = [];
        const hear = ({ sql }: { sql: string }) => void statements.push(sql);
        strapi.db.connection.on('query', hear);
        await strapi.db.query('api::person.person').update({ where, data: values });
        strapi.db.connection.removeListener('query', hear);
        const first = statements.findIndex((sql) => /^update .*persons/.test(sql));
        if (first < 0) throw new Error('the write was not heard');
        return statements.slice(0, first).filter((sql) => sql.includes('persons_seat_lnk')).length;
      },
      { id },
      data
    );

  it('is looked up only by writes to such a relation, and only while somebody listens', async () => {
    const world = await copyWorld(site);
    const [a, c, seat] = [world.at('A').id, world.at('C').id, world.at('S1').id];
    const webhook = `${CRM}/webhooks/${log.webhookId}`;
    expect(await lookups(a, { mail: 'other@example.test' })).toBe(0);
    expect(await lookups(c, { seat })).toBeGreaterThan(0);
    await site.request('PATCH', webhook, { body: { active: false } });
    expect(await lookups(a, { seat })).toBe(0);
    await site.request('PATCH', webhook, { body: { active: true } });
  });
});
