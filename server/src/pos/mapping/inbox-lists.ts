import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { RECORD_KINDS, type RecordKind } from '../../../../shared/contracts/pos';
import type { Mapping, UnknownValue } from '../../../../shared/contracts/pos-mapping';
import type { Page } from '../../../../shared/contracts/webhooks';
import { currentExecutor, type Executor, table } from '../../database/connection';
import { whereContains } from '../../database/contains';
import { type PageRequest, readPage } from '../../http/pagination';
import { isoTime } from '../../runtime/iso-time';
import { type Big, ITEMS_TABLE, LOCATIONS_TABLE } from '../../stock/tables';
import {
  type ConnectionRow,
  CONNECTIONS_TABLE,
  POS_EVENTS_TABLE,
  POS_MAPPINGS_TABLE,
  POS_WAITS_TABLE,
  type PosMappingRow,
} from '../tables';
import type { InboxQuery } from './inputs';

interface InboxRow {
  inbox_digest: string;
  kind: UnknownValue['kind'];
  value: string;
  connection_id: Big;
  records: Big;
  pieces: Big | null;
  first_at: Big;
  last_at: Big;
}

type ByKind = UnknownValue['by_kind'];

type MappingWithNames = PosMappingRow & {
  sku: string | null;
  item_name: string | null;
  location_code: string;
  location_name: string;
};

const namesOf = async (
  strapi: Core.Strapi,
  executor: Executor,
  ids: readonly number[]
): Promise<Map<number, string>> => {
  const rows = (await table(strapi, executor, CONNECTIONS_TABLE)
    .select('id', 'name')
    .whereIn('id', [...new Set(ids)])) as Pick<ConnectionRow, 'id' | 'name'>[];
  return new Map(rows.map(({ id, name }) => [Number(id), name]));
};

const toMapping = (row: MappingWithNames, connections: ReadonlyMap<number, string>): Mapping => {
  const connection = row.connection_id === null ? null : Number(row.connection_id);
  const to = (): Mapping['to'] => {
    if (row.location_id !== null) {
      const id = Number(row.location_id);
      return { location: { id, code: row.location_code, name: row.location_name } };
    }
    if (row.item_id === null) return { ignore: true };
    const item = { id: Number(row.item_id), sku: row.sku ?? '', name: row.item_name };
    return { item, created: Boolean(row.made_item) };
  };
  return {
    id: Number(row.id),
    kind: row.kind,
    value: row.value,
    connection:
      connection === null ? null : { id: connection, name: connections.get(connection) ?? '' },
    to: to(),
    made_by: row.made_by,
    created_at: isoTime(Number(row.created_at)),
  };
};

const noneOfAnyKind = (): ByKind =>
  Object.fromEntries(RECORD_KINDS.map((kind) => [kind, 0])) as ByKind;

/** How many records of which kind are in these rows of the inbox. */
const kindsOf = async (
  strapi: Core.Strapi,
  executor: Executor,
  digests: readonly string[]
): Promise<Map<string, ByKind>> => {
  const kinds = new Map(digests.map((digest) => [digest, noneOfAnyKind()]));
  if (digests.length === 0) return kinds;
  const schema = strapi.db.getSchemaName();
  const named = (name: string): string => (schema ? `${schema}.${name}` : name);
  const rows = (await (executor as Knex)(`${named(POS_WAITS_TABLE)} as w`)
    .join(`${named(POS_EVENTS_TABLE)} as e`, 'e.id', 'w.event_id')
    .select('w.inbox_digest', 'e.kind')
    .whereIn('w.inbox_digest', digests)
    .groupBy('w.inbox_digest', 'e.kind')
    .count({ records: '*' })) as { inbox_digest: string; kind: RecordKind; records: Big }[];
  for (const { inbox_digest: digest, kind, records } of rows) {
    const counts = kinds.get(digest);
    if (counts) counts[kind] = Number(records);
  }
  return kinds;
};

/** What records wait for, those of the latest records first. */
export const listUnknown = async (
  strapi: Core.Strapi,
  { kind, search, ...request }: InboxQuery
): Promise<Page<UnknownValue>> => {
  const executor = await currentExecutor(strapi);
  const query: Knex.QueryBuilder = table(strapi, executor, POS_WAITS_TABLE)
    .select('kind', 'inbox_digest')
    .whereNotNull('inbox_digest')
    .groupBy('kind', 'inbox_digest')
    .min({ value: 'value', connection_id: 'connection_id', first_at: 'at' })
    .max({ last_at: 'at' })
    .count({ records: '*' })
    .sum({ pieces: 'pieces' })
    .orderBy([
      { column: 'last_at', order: 'desc' },
      { column: 'inbox_digest', order: 'asc' },
    ]);
  if (kind !== undefined) query.where({ kind });
  if (search) whereContains(strapi, query, ['value'], search);
  const { rows, meta } = await readPage<InboxRow>(executor, query, request);
  const names = await namesOf(
    strapi,
    executor,
    rows.map((row) => Number(row.connection_id))
  );
  const kinds = await kindsOf(
    strapi,
    executor,
    rows.map((row) => row.inbox_digest)
  );
  const data = rows.map((row): UnknownValue => {
    const id = Number(row.connection_id);
    return {
      kind: row.kind,
      value: row.value,
      ...(row.kind === 'location_ref' && { connection: { id, name: names.get(id) ?? '' } }),
      records: Number(row.records),
      by_kind: kinds.get(row.inbox_digest) ?? noneOfAnyKind(),
      pieces: Number(row.pieces ?? 0),
      first_at: isoTime(Number(row.first_at)),
      last_at: isoTime(Number(row.last_at)),
    };
  });
  return { data, meta };
};

/** The mappings that hold, newest first. */
export const listMappings = async (
  strapi: Core.Strapi,
  request: PageRequest
): Promise<Page<Mapping>> => {
  const schema = strapi.db.getSchemaName();
  const named = (name: string): string => (schema ? `${schema}.${name}` : name);
  const executor = await currentExecutor(strapi);
  const query = (executor as Knex)(`${named(POS_MAPPINGS_TABLE)} as m`)
    .leftJoin(`${named(ITEMS_TABLE)} as i`, 'i.id', 'm.item_id')
    .leftJoin(`${named(LOCATIONS_TABLE)} as p`, 'p.id', 'm.location_id')
    .select('m.*', 'i.sku', 'i.name as item_name')
    .select('p.code as location_code', 'p.name as location_name')
    .whereNotNull('m.active_digest')
    .orderBy('m.id', 'desc');
  const { rows, meta } = await readPage<MappingWithNames>(executor, query, request);
  const names = await namesOf(
    strapi,
    executor,
    rows.flatMap(({ connection_id: id }) => (id === null ? [] : [Number(id)]))
  );
  return { data: rows.map((row) => toMapping(row, names)), meta };
};
