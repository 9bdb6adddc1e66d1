import type { Site } from '../support/site';
import type { LoggedEvent } from './crm-helpers';

/** Types of the test site whose relations have one holder at most, as the CRM's. */
export const PERSON_SOURCES = {
  contact: {
    contentType: 'api::person.person',
    fields: {
      email: 'mail',
      company_id: 'seat',
      tags: 'keys',
      'fields.keys': 'keys',
      'fields.pass': 'pass',
      'fields.partner': 'partner',
      'fields.partner_of': 'partnerOf',
      'fields.room': 'room',
    },
  },
  tag: { contentType: 'api::key.key', fields: { slug: 'handle', name: 'title' } },
  company: {
    contentType: 'api::seat.seat',
    fields: { name: 'title', 'fields.person': 'person' },
  },
  deal: { contentType: 'api::contract.contract', fields: { contact_id: 'person' } },
};

export type TypeName = 'person' | 'seat' | 'key' | 'contract' | 'guest' | 'room';

export interface Row {
  id: number;
  documentId: string;
}

export interface World {
  at(name: string): Row;
  nameOf(documentId: string): string;
}

export interface RelationEdit {
  attribute: string;
  operation: 'connect' | 'set' | 'disconnect';
  targets: readonly Row[];
}

export const CHANNELS = [
  'the document service',
  'the content manager',
  'the query engine',
] as const;
export type Channel = (typeof CHANNELS)[number];

const uidOf = (type: TypeName): string => `api::${type}.${type}`;

/** What a record of a type cannot be without. */
const required = (type: TypeName): Record<string, unknown> =>
  type === 'person' || type === 'guest' ? { mail: `${type}@example.test` } : { title: type };

const writeByHttp = async (
  site: Site,
  type: TypeName,
  row: Row | null,
  data: object
): Promise<void> => {
  const path = `/content-manager/collection-types/${uidOf(type)}`;
  const answer = row
    ? await site.request('PUT', `${path}/${row.documentId}`, { body: data })
    : await site.request('POST', path, { body: data });
  if (answer.status >= 300) throw new Error(`${answer.status}: ${answer.text}`);
};

/** Edits a relation of a record (null: of a new one) as each way of writing has it said. */
export const write = async (
  site: Site,
  channel: Channel,
  type: TypeName,
  row: Row | null,
  { attribute, operation, targets }: RelationEdit
): Promise<void> => {
  const uid = uidOf(type);
  const given = row ? {} : required(type);
  const data = (references: unknown[]) => ({ ...given, [attribute]: { [operation]: references } });
  const method = row ? 'update' : 'create';
  if (channel === 'the query engine') {
    const where = row ? { where: { id: row.id } } : {};
    const params = { ...where, data: data(targets.map(({ id }) => id)) };
    await site.control('query', { uid, method, params });
  } else if (channel === 'the document service') {
    const of = row ? { documentId: row.documentId } : {};
    const params = { ...of, data: data(targets.map(({ documentId }) => documentId)) };
    await site.control('documents', { uid, method, params });
  } else {
    await writeByHttp(site, type, row, data(targets.map(({ documentId }) => ({ documentId }))));
  }
};

export const connect = (
  site: Site,
  type: TypeName,
  row: Row,
  attribute: string,
  target: Row
): Promise<void> =>
  write(site, 'the document service', type, row, {
    attribute,
    operation: 'connect',
    targets: [target],
  });

/** What a world is made of: A has S1 for a seat and a pass, K1, D1, and X for a partner; B has S2; C has nothing. R1 is published. */
const fillWorld = async (site: Site) => {
  const rows = new Map<string, Row>();
  const types = new Map<string, TypeName>();
  const make = async (
    name: string,
    type: TypeName,
    relations: Record<string, string> = {},
    status?: 'published'
  ) => {
    const data: Record<string, unknown> = { ...required(type) };
    for (const [attribute, target] of Object.entries(relations)) {
      data[attribute] = rows.get(target)?.documentId;
    }
    const params = { data, status };
    const row = await site.control('documents', { uid: uidOf(type), method: 'create', params });
    rows.set(name, row);
    types.set(name, type);
  };
  await make('S1', 'seat');
  await make('S2', 'seat');
  await make('X', 'person');
  await make('A', 'person', { seat: 'S1', pass: 'S1', partner: 'X' });
  await make('B', 'person', { seat: 'S2' });
  await make('C', 'person');
  await make('K1', 'key', { person: 'A' });
  await make('K2', 'key');
  await make('D1', 'contract', { person: 'A' });
  await make('D2', 'contract');
  await make('R1', 'room', {}, 'published');
  await make('R2', 'room');
  return { rows, types };
};

export const makeWorld = async (site: Site): Promise<World> =>
  worldOf((await fillWorld(site)).rows);

/** An attribute as the host's database knows it. */
interface Relation {
  target?: string;
  joinTable?: {
    name: string;
    joinColumn: { name: string };
    inverseJoinColumn: { name: string };
  };
}

/** The world of a site that others are copies of; no test writes to it. */
const models = new WeakMap<Site, [name: string, uid: string, row: Row][]>();

/**
 * Makes another world like that of `makeWorld`, by copies of its rows and of their links: what the
 * document service leaves, in a twentieth of its time and without its events.
 */
export const copyWorld = async (site: Site): Promise<World> => {
  if (!models.has(site)) {
    const { types, rows } = await fillWorld(site);
    models.set(
      site,
      [...rows].map(([name, row]) => [name, uidOf(types.get(name)!), row])
    );
  }
  const copies = await site.evaluate(async ({ strapi, require }, model) => {
    const { randomBytes } = require('node:crypto');
    const { connection: knex, metadata, dialect } = strapi.db;
    const insert = async (table: string, row: object): Promise<number> => {
      const query = knex(table).insert(row);
      if (dialect.client !== 'postgres') return (await query)[0];
      return (await query.returning('id'))[0].id;
    };
    const uids = new Set(model.map(([, uid]) => uid));
    const newIds = new Map([...uids].map((uid) => [uid, new Map<number, number>()]));
    const made: [string, Row][] = [];
    for (const [name, uid, { id, documentId }] of model) {
      const { tableName } = metadata.get(uid);
      // The host takes what begins with a digit for a number.
      const copy = `c${randomBytes(12).toString('hex').slice(1)}`;
      for (const row of await knex(tableName).where({ document_id: documentId }).orderBy('id')) {
        const { id: old, ...values } = row;
        const created = await insert(tableName, { ...values, document_id: copy });
        newIds.get(uid)!.set(old, created);
        if (old === id) made.push([name, { id: created, documentId: copy }]);
      }
    }
    const copied = new Set<string>();
    for (const uid of uids) {
      const attributes: Relation[] = Object.values(metadata.get(uid).attributes);
      for (const { joinTable, target } of attributes) {
        if (!joinTable || !target || !uids.has(target) || copied.has(joinTable.name)) continue;
        copied.add(joinTable.name);
        const { name, joinColumn, inverseJoinColumn } = joinTable;
        const [ours, theirs] = [newIds.get(uid)!, newIds.get(target)!];
        for (const row of await knex(name).whereIn(joinColumn.name, [...ours.keys()])) {
          const { id: _id, ...values } = row;
          await insert(name, {
            ...values,
            [joinColumn.name]: ours.get(row[joinColumn.name]),
            [inverseJoinColumn.name]: theirs.get(row[inverseJoinColumn.name]),
          });
        }
      }
    }
    return made;
  }, models.get(site)!);
  return worldOf(new Map(copies));
};

export const worldOf = (rows: ReadonlyMap<string, Row>): World => {
  const names = new Map([...rows].map(([name, { documentId }]) => [documentId, name]));
  return {
    at(name) {
      const row = rows.get(name);
      if (!row) throw new Error(`nothing is called ${name}`);
      return row;
    },
    nameOf: (documentId) => names.get(documentId) ?? 'new',
  };
};

/** Each event as its name, who it is about and what it says of them, in no order. */
export const saidOf = (world: World, events: readonly LoggedEvent[]): string[] =>
  events
    .map(({ event, data }) => {
      const who = world.nameOf((data.contact ?? data).id);
      const tag = data.tag ? world.nameOf(data.tag.id) : null;
      return [event, who, tag, data.changed?.join(' ')].filter(Boolean).join(' ');
    })
    .sort();
