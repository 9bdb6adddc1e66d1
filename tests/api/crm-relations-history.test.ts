import { describeEach, anyDatabase } from '../support/databases';
import type { Site } from '../support/site';
import { CRM, type EventLog, useWatchedSite } from './crm-helpers';
import {
  CHANNELS,
  makeWorld,
  PERSON_SOURCES,
  type RelationEdit,
  saidOf,
  type TypeName,
  type World,
  write,
} from './crm-relations-world';

const NAMES: Partial<Record<TypeName, string[]>> = {
  person: ['A', 'B', 'C', 'X'],
  seat: ['S1', 'S2'],
  key: ['K1', 'K2'],
  contract: ['D1', 'D2'],
  room: ['R1', 'R2'],
};

const RELATIONS: [TypeName, string, TypeName][] = [
  ['person', 'seat', 'seat'],
  ['seat', 'person', 'person'],
  ['person', 'keys', 'key'],
  ['key', 'person', 'person'],
  ['person', 'partner', 'person'],
  ['person', 'partnerOf', 'person'],
  ['person', 'contract', 'contract'],
  ['contract', 'person', 'person'],
  ['person', 'room', 'room'],
  ['room', 'person', 'person'],
  ['person', 'pass', 'seat'],
];

type Payloads = Map<string, [event: string, payload: Record<string, unknown>]>;

const KINDS = { contacts: 'contact.updated', companies: 'company.updated', deals: 'deal.updated' };

const payloadsOf = async (site: Site, world: World): Promise<Payloads> => {
  const payloads: Payloads = new Map();
  for (const [path, event] of Object.entries(KINDS)) {
    const { body } = await site.request('GET', `${CRM}/${path}?per_page=100`);
    for (const payload of body.data) {
      const name = world.nameOf(payload.id);
      if (name !== 'new') payloads.set(name, [event, payload]);
    }
  }
  return payloads;
};

const differing = (before: object, after: object): string[] => {
  const [old, now] = [before as Record<string, unknown>, after as Record<string, unknown>];
  return Object.keys({ ...old, ...now }).filter(
    (key) => JSON.stringify(old[key] ?? null) !== JSON.stringify(now[key] ?? null)
  );
};

/** What receivers must be told, by nothing but what the routes answer before and after. */
const expectedOf = (before: Payloads, after: Payloads): string[] => {
  const expected: string[] = [];
  for (const [name, [event, old]] of before) {
    const now = after.get(name)?.[1] ?? {};
    const keys = differing(old, now).filter((key) => key !== 'dates' && key !== 'fields');
    const fields = differing(old.fields as object, now.fields as object);
    const changed = [...keys, ...fields.map((key) => `fields.${key}`)];
    if (changed.length === 0) continue;
    expected.push([event, name, ...(event === 'company.updated' ? [] : changed)].join(' '));
  }
  return expected.sort();
};

/** A fixed sequence that looks random: the same edits on every run and every database. */
const createPicker = (seed: number) => {
  let state = seed;
  return <T>(list: readonly T[]): T => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return list[(state >>> 16) % list.length] as T;
  };
};

describeEach(anyDatabase(), 'a long history of relations that change hands', (database) => {
  let site: Site;
  let log: EventLog;
  let world: World;
  useWatchedSite(
    database,
    async (watched) => {
      ({ site, log } = watched);
      world = await makeWorld(site);
    },
    { sources: PERSON_SOURCES }
  );

  it.each([1, 2])(
    'says what the routes answer, no more and no less: %d',
    async (seed) => {
      const pick = createPicker(seed);
      const history: string[] = [];
      let told = 0;
      await log.take();
      let before = await payloadsOf(site, world);
      for (let step = 0; step < 60; step += 1) {
        const [type, attribute, target] = pick(RELATIONS);
        const record = pick(NAMES[type] ?? []);
        const operation = pick<RelationEdit['operation']>([
          'connect',
          'connect',
          'set',
          'disconnect',
        ]);
        const to = pick((NAMES[target] ?? []).filter((name) => name !== record));
        const hasDrafts = type === 'room' || target === 'room';
        const channel = pick(hasDrafts ? CHANNELS.slice(0, 2) : CHANNELS);
        history.push(`${channel}: ${operation} ${to} as ${attribute} of ${record}`);
        await write(site, channel, type, world.at(record), {
          attribute,
          operation,
          targets: [world.at(to)],
        });
        if (hasDrafts && pick([true, false])) {
          const { documentId } = world.at('R1');
          const params = { documentId };
          history.push('publish R1');
          await site.control('documents', { uid: 'api::room.room', method: 'publish', params });
        }
        const after = await payloadsOf(site, world);
        const events = (await log.take()).filter(({ event }) => event.endsWith('.updated'));
        const said = saidOf(world, events);
        expect({ history, said }).toEqual({ history, said: expectedOf(before, after) });
        told += said.length;
        before = after;
      }
      expect(told).toBeGreaterThan(30);
    },
    120_000
  );
});
