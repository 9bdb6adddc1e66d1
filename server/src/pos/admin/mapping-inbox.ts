import { z } from '@strapi/utils';
import type { Knex } from 'knex';
import { RECORD_KINDS, type RecordKind } from '../../../../shared/contracts/pos';
import {
  type Mapping,
  MAPPING_KINDS,
  type Resolved,
  type UnknownValue,
} from '../../../../shared/contracts/pos-mapping';
import type { Page } from '../../../../shared/contracts/webhooks';
import { whereContains } from '../../database/contains';
import { firstOrNotFound } from '../../database/retry';
import { pageQuery, type PageRequest, readPage } from '../../http/pagination';
import { fieldError } from '../../http/validation';
import { isoTime } from '../../runtime/text';
import { refusal } from '../../runtime/refusal';
import { createItemInput, identifier, itemName, locationName, rowId } from '../../stock/inputs';
import { itemFromInput, skuDigest } from '../../stock/items';
import { ItemsService } from '../../stock/items-service';
import { locationFromInput } from '../../stock/locations';
import { findProducts } from '../../stock/products';
import { type Big, type ItemRow, ITEMS_TABLE, LOCATIONS_TABLE } from '../../stock/tables';
import { twice, wakeMapped, wakeWaiting } from '../processing/waits';
import {
  CONNECTIONS_TABLE,
  POS_EVENTS_TABLE,
  POS_MAPPINGS_TABLE,
  POS_WAITS_TABLE,
  type PosMappingRow,
} from '../tables';
import { connectionsOf } from '../connections';
import { connectionWait, mappingDigest } from '../mappings';
import type { App } from '../../app';
import type { Db, Tx } from '../../database/db';

export const inboxQuery = z.object({
  ...pageQuery,
  kind: z.enum(MAPPING_KINDS).optional(),
  search: z.string().max(256).optional(),
});

const target = z
  .strictObject({
    item: itemName.optional(),
    create: z
      .union([z.literal(true), createItemInput.omit({ opening: true }).partial()])
      .optional(),
    location: locationName.optional(),
    ignore: z.literal(true).optional(),
  })
  .refine((to) => Object.values(to).filter((value) => value !== undefined).length === 1, {
    message: 'must have one of item, create, location and ignore',
  });

export const resolveInput = z
  .strictObject({
    kind: z.enum(MAPPING_KINDS),
    value: identifier,
    connection: rowId.optional(),
    to: target,
    preview: z.boolean().default(false),
  })
  .superRefine(({ kind, connection, to }, context) => {
    const wrong = (path: string[], message: string) =>
      context.addIssue({ code: 'custom', path, message });
    if (kind === 'location_ref') {
      if (connection === undefined) wrong(['connection'], 'is required for a location_ref');
      if (to.location === undefined)
        wrong(['to', 'location'], 'is what a location_ref is mapped to');
      return;
    }
    if (connection !== undefined) wrong(['connection'], `means nothing for a ${kind}`);
    if (to.location !== undefined) wrong(['to', 'location'], `is nothing a ${kind} is mapped to`);
  });

export const undoInput = z.strictObject({ id: rowId });

type InboxQuery = z.infer<typeof inboxQuery>;
type Resolve = z.infer<typeof resolveInput>;
type Target = Resolve['to'];

/** The target of a mapping; without an item and a location it ignores lines. */
type Destination = Pick<PosMappingRow, 'item_id' | 'location_id' | 'made_item' | 'revived_item'>;

const NOWHERE = { item_id: null, location_id: null, made_item: false, revived_item: false };

const mappings = (db: Db): Knex.QueryBuilder => db.table(POS_MAPPINGS_TABLE);

/** Makes an item for a value; one of that SKU that was archived comes back. */
const makeItem = async (
  tx: Tx,
  app: App,
  { kind, value }: Resolve,
  create: NonNullable<Target['create']>
): Promise<Destination> => {
  const given = create === true ? {} : create;
  const sku = given.sku ?? value;
  const gtin = given.gtin ?? (kind === 'gtin' ? value : null);
  const known: ItemRow | undefined = await tx
    .table(ITEMS_TABLE)
    .where({ sku_digest: skuDigest(sku) })
    .whereNotNull('archived_at')
    .first();
  if (known) {
    const { name, low_at } = given;
    const change = { archived: false, name, low_at } as const;
    const { id } = await new ItemsService(app).updateItem(Number(known.id), change);
    return { ...NOWHERE, item_id: id, revived_item: true };
  }
  const { id } = await new ItemsService(app).createItem({
    sku,
    gtin,
    name: given.name ?? null,
    low_at: given.low_at ?? 0,
    opening: [],
  });
  return { ...NOWHERE, item_id: id, made_item: true };
};

/** The target that an owner chooses; with `store` false a new item is not stored. @throws ValidationError (400) */
const destinationOf = async (tx: Tx, app: App, input: Resolve, store: boolean) => {
  const { to } = input;
  if (to.location !== undefined) {
    const location = await locationFromInput(tx, to.location, 'to.location');
    return { ...NOWHERE, location_id: Number(location.id) };
  }
  if (to.item !== undefined) {
    const item = await itemFromInput(tx, to.item, 'to.item');
    if (item.archived_at !== null) throw fieldError('to.item', refusal('is archived', 'archived'));
    return { ...NOWHERE, item_id: Number(item.id) };
  }
  if (to.create === undefined || !store) return NOWHERE;
  return makeItem(tx, app, input, to.create);
};

/**
 * Ends a mapping. It archives the item that it restored, or that it created unless that is one of the site's products.
 * An item that existed before loses only the lines that the mapping decided. Returns the records to process again.
 */
const endMapping = async (tx: Tx, app: App, row: PosMappingRow): Promise<number[]> => {
  const id = Number(row.id);
  await mappings(tx).where({ id }).update({ active_digest: null, undone_at: Date.now() });
  const item = Number(row.item_id);
  const items = new ItemsService(app);
  // One of the site's own products is for sale without any mapping.
  const isOfProduct = async (): Promise<boolean> =>
    (await findProducts(tx, app, [(await items.getItem(item)).sku], [])).length > 0;
  if (row.revived_item || (item && row.made_item && !(await isOfProduct()))) {
    await items.archiveItem(item);
  }
  return twice(tx, app, (now) => wakeMapped(now, app, id));
};

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

type MappingWithNames = PosMappingRow &
  Record<'sku' | 'item_name', string | null> &
  Record<'location_code' | 'location_name', string>;

const toMapping = (
  row: MappingWithNames,
  connectionOf: Awaited<ReturnType<typeof connectionsOf>>
): Mapping => {
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
    connection: row.connection_id === null ? null : connectionOf(row.connection_id),
    to: to(),
    made_by: row.made_by,
    created_at: isoTime(Number(row.created_at)),
  };
};

const noneOfAnyKind = (): ByKind =>
  Object.fromEntries(RECORD_KINDS.map((kind) => [kind, 0])) as ByKind;

const kindsOf = async (db: Db, digests: readonly string[]): Promise<Map<string, ByKind>> => {
  const kinds = new Map(digests.map((digest) => [digest, noneOfAnyKind()]));
  if (digests.length === 0) return kinds;
  const rows = (await db
    .table(`${POS_WAITS_TABLE} as w`)
    .join(`${POS_EVENTS_TABLE} as e`, 'e.id', 'w.event_id')
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

/** Earlier mappings of the same value: their records were not moved, and refer to the value too. */
const replacedBy = async (
  tx: Db,
  { id, kind, value, connection_id: connection }: PosMappingRow
): Promise<PosMappingRow[]> => {
  const rows = (await mappings(tx)
    .where({ kind, value, connection_id: connection })
    .where('id', '<', id)
    .whereNull('undone_at')
    .orderBy('id', 'desc')
    .forUpdate()) as PosMappingRow[];
  // A collation may take two values for one.
  return rows.filter((row) => row.value === value);
};

/** Values of tills that the site does not know; docs/shop.md#unmapped-products-and-locations. */
export class MappingInboxService {
  constructor(private readonly app: App) {}

  /** Values of the latest records first. */
  async list({ kind, search, ...request }: InboxQuery): Promise<Page<UnknownValue>> {
    const db = await this.app.db.current();
    const query: Knex.QueryBuilder = db
      .table(POS_WAITS_TABLE)
      .select('kind', 'inbox_digest')
      .whereNotNull('inbox_digest')
      .groupBy('kind', 'inbox_digest')
      .min({ value: 'value', connection_id: 'connection_id', first_at: 'at' })
      .max({ last_at: 'at' })
      .count({ records: '*' })
      .sum({ pieces: 'pieces' })
      .orderBy('last_at', 'desc')
      .orderBy('inbox_digest');
    if (kind !== undefined) query.where({ kind });
    if (search) whereContains(this.app.db, query, ['value'], search);
    const { rows, meta } = await readPage<InboxRow>(db, query, request);
    const connectionOf = await connectionsOf(db, rows);
    const digests = rows.map((row) => row.inbox_digest);
    const kinds = await kindsOf(db, digests);
    const data = rows.map((row): UnknownValue => ({
      kind: row.kind,
      value: row.value,
      ...(row.kind === 'location_ref' && { connection: connectionOf(row.connection_id) }),
      records: Number(row.records),
      by_kind: kinds.get(row.inbox_digest) ?? noneOfAnyKind(),
      pieces: Number(row.pieces ?? 0),
      first_at: isoTime(Number(row.first_at)),
      last_at: isoTime(Number(row.last_at)),
    }));
    return { data, meta };
  }

  /** Maps a value for waiting and later records. @throws ValidationError (400) that names the missing target */
  resolve(input: Resolve, madeBy: string | null): Promise<Resolved> {
    return this.app.db.unique(async (tx) => {
      const { kind, value, connection, preview } = input;
      if (connection !== undefined) {
        // Locked first, so concurrently processed records have begun to wait. Deleted connections too: their records
        // still wait.
        const row = tx.table(CONNECTIONS_TABLE).where({ id: connection }).forUpdate();
        const missing = refusal(`there is no connection ${connection}`, 'no_connection');
        if (!(await row.first())) throw fieldError('connection', missing);
      }
      const digest = mappingDigest(kind, value, connection ?? null);
      const [waiting] = (await tx
        .table(POS_WAITS_TABLE)
        .where({ inbox_digest: digest })
        .count({ records: '*' })
        .sum({ pieces: 'pieces' })) as { records: Big; pieces: Big | null }[];
      const { records = 0, pieces } = waiting ?? {};
      const reached = { records: Number(records), pieces: Number(pieces ?? 0) };
      const destination = await destinationOf(tx, this.app, input, !preview);
      if (preview) return { id: null, ...reached };
      // Records of an earlier mapping stay unchanged: only from now on the value means something else.
      await mappings(tx).where({ active_digest: digest }).update({ active_digest: null });
      await mappings(tx).insert({
        kind,
        value,
        active_digest: digest,
        connection_id: connection ?? null,
        ...destination,
        made_by: madeBy,
        created_at: Date.now(),
      });
      const made = (await mappings(tx).where({ active_digest: digest }).first()) as PosMappingRow;
      const id = Number(made.id);
      const waited = connection === undefined ? digest : connectionWait(connection);
      await twice(tx, this.app, (now) => wakeWaiting(now, this.app, [waited], 'mapping'));
      return { id, ...reached };
    });
  }

  /**
   * Undoes a mapping and those of the same value that it replaced: their records wait again and their stock changes are
   * reversed. Does nothing if it is undone already. Throws NotFoundError (404).
   */
  undo(id: number): Promise<{ id: number; records: number }> {
    return this.app.db.unique(async (tx) => {
      const found = mappings(tx).where({ id }).forUpdate();
      const row = await firstOrNotFound<PosMappingRow>(found, 'Mapping');
      if (row.undone_at !== null) return { id, records: 0 };
      const records = new Set<number>();
      for (const one of [row, ...(await replacedBy(tx, row))]) {
        for (const record of await endMapping(tx, this.app, one)) records.add(record);
      }
      return { id, records: records.size };
    });
  }

  /** The mappings that hold, newest first. */
  async mappings(request: PageRequest): Promise<Page<Mapping>> {
    const db = await this.app.db.current();
    const query = db
      .table(`${POS_MAPPINGS_TABLE} as m`)
      .leftJoin(`${ITEMS_TABLE} as i`, 'i.id', 'm.item_id')
      .leftJoin(`${LOCATIONS_TABLE} as p`, 'p.id', 'm.location_id')
      .select('m.*', 'i.sku', 'i.name as item_name')
      .select('p.code as location_code', 'p.name as location_name')
      .whereNotNull('m.active_digest')
      .orderBy('m.id', 'desc');
    const { rows, meta } = await readPage<MappingWithNames>(db, query, request);
    const connectionOf = await connectionsOf(db, rows);
    return { data: rows.map((row) => toMapping(row, connectionOf)), meta };
  }
}
