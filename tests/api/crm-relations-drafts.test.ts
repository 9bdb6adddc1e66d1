import { describeEach, anyDatabase } from '../support/databases';
import type { Site } from '../support/site';
import { type EventLog, useWatchedSite } from './crm-helpers';
import {
  CHANNELS,
  type Row,
  saidOf,
  type TypeName,
  type World,
  worldOf,
  write,
} from './crm-relations-world';

const SOURCES = {
  contact: {
    contentType: 'api::guest.guest',
    fields: { email: 'mail', company_id: 'seat', 'fields.room': 'room' },
  },
  company: { contentType: 'api::seat.seat', fields: { name: 'title' } },
};

const ROOM_FROM_A_TO_B = ['contact.updated A fields.room', 'contact.updated B fields.room'];

describeEach(anyDatabase(), 'a relation that is taken, with draft and publish', (database) => {
  let site: Site;
  let log: EventLog;
  let world: World;
  useWatchedSite(
    database,
    (watched) => {
      ({ site, log } = watched);
    },
    { sources: SOURCES }
  );

  const documents = (type: TypeName, method: string, params: object) =>
    site.control('documents', { uid: `api::${type}.${type}`, method, params });
  const publish = (type: TypeName, name: string) =>
    documents(type, 'publish', { documentId: world.at(name).documentId });
  const said = async () => saidOf(world, await log.take());
  const edit = (
    channel: (typeof CHANNELS)[number],
    [type, name, attribute, target]: [TypeName, string, string, string]
  ) => {
    const relation = { attribute, operation: 'connect', targets: [world.at(target)] } as const;
    return write(site, channel, type, world.at(name), relation);
  };

  /** A has the seat S1 and the room R1, B has neither, R2 is free; all are published. */
  beforeEach(async () => {
    const rows = new Map<string, Row>();
    const make = async (name: string, type: TypeName, data: Record<string, unknown>) => {
      const params = { data, status: 'published' };
      rows.set(name, await documents(type, 'create', params));
    };
    await make('S1', 'seat', { title: 'S1' });
    await make('R1', 'room', { title: 'R1' });
    await make('R2', 'room', { title: 'R2' });
    const [seat, room] = [rows.get('S1')?.documentId, rows.get('R1')?.documentId];
    await make('A', 'guest', { mail: 'a@example.test', seat, room });
    await make('B', 'guest', { mail: 'b@example.test' });
    world = worldOf(rows);
    await log.take();
  });

  const PEOPLE = CHANNELS.filter((channel) => channel !== 'the query engine');

  it.each(PEOPLE)('is said of the loser when a draft takes it, %s', async (channel) => {
    await edit(channel, ['guest', 'B', 'seat', 'S1']);
    expect(await said()).toEqual(['contact.updated A company_id']);
    await publish('guest', 'B');
    expect(await said()).toEqual(['contact.updated B company_id']);
    await publish('guest', 'B');
    expect(await said()).toEqual([]);
  });

  it.each(PEOPLE)('waits for the publishing where both ends have drafts, %s', async (channel) => {
    await edit(channel, ['guest', 'B', 'room', 'R1']);
    expect(await said()).toEqual([]);
    await publish('guest', 'B');
    expect(await said()).toEqual(ROOM_FROM_A_TO_B);
    await publish('guest', 'A');
    expect(await said()).toEqual([]);
  });

  it.each(PEOPLE)('is said when the other end is published, %s', async (channel) => {
    await edit(channel, ['room', 'R1', 'guest', 'B']);
    expect(await said()).toEqual([]);
    await publish('room', 'R1');
    expect(await said()).toEqual(ROOM_FROM_A_TO_B);
  });

  it('is said once when the other end is saved and published in one go', async () => {
    const { documentId } = world.at('R2');
    const data = { guest: world.at('A').documentId };
    await documents('room', 'update', { documentId, data, status: 'published' });
    expect(await said()).toEqual(['contact.updated A fields.room']);
  });

  it('says nothing when the other end is published again', async () => {
    await documents('room', 'update', {
      documentId: world.at('R1').documentId,
      data: { title: 'Renamed' },
    });
    await publish('room', 'R1');
    expect(await said()).toEqual([]);
  });

  it('is said when the other end goes and when it comes back', async () => {
    const { documentId } = world.at('R1');
    await documents('room', 'unpublish', { documentId });
    expect(await said()).toEqual(['contact.updated A fields.room']);
    await publish('room', 'R1');
    expect(await said()).toEqual(['contact.updated A fields.room']);
  });
});
