import type { MappingKind } from '../../../shared/contracts/pos-mapping';
import { findInChunks } from '../database/written-rows';
import { digestOf } from '../runtime/text';
import { type ItemRow, ITEMS_TABLE } from '../stock/tables';
import { gtinDigest, type ItemName, skuDigest } from '../stock/items';
import { POS_MAPPINGS_TABLE, type PosMappingRow } from './tables';
import type { Db } from '../database/db';

/** A line that a mapping decided; `WHOLE_RECORD`: the record's location. */
export interface MappedLine {
  mapping: number;
  line: number;
}

/** The key of a value; `connection` is only needed for a `location_ref`. */
export const mappingDigest = (kind: MappingKind, value: string, connection: number | null) => {
  switch (kind) {
    case 'sku':
      return skuDigest(value);
    case 'gtin':
      return gtinDigest(value);
    case 'location_ref':
      return digestOf(`location_ref:${connection ?? 0}:${value}`);
  }
};

/** Digests of what a line names, the SKU's first: by them its mapping is found, and it waits for its item. */
export const itemWaits = ({ sku, gtin }: ItemName): string[] => [
  ...(sku === null ? [] : [skuDigest(sku)]),
  ...(gtin === null ? [] : [gtinDigest(gtin)]),
];

type Found = Pick<PosMappingRow, 'id' | 'active_digest' | 'item_id' | 'location_id'>;

/** The owner's decisions about these names and locations; no statement if there are none. */
export const loadMappings = async (
  db: Db,
  names: readonly ItemName[],
  locations: readonly { connection: number; ref: string }[]
) => {
  const digests = [
    ...names.flatMap(itemWaits),
    ...locations.map(({ connection, ref }) => mappingDigest('location_ref', ref, connection)),
  ];
  // A mapping to an archived item has no effect.
  const rows = await findInChunks<Found, string>(digests, (some) =>
    db
      .table(`${POS_MAPPINGS_TABLE} as m`)
      .leftJoin(`${ITEMS_TABLE} as i`, 'i.id', 'm.item_id')
      .select('m.id', 'm.active_digest', 'm.item_id', 'm.location_id')
      .whereIn('m.active_digest', some)
      .whereNull('i.archived_at')
  );
  const found = new Map(rows.map((row) => [row.active_digest, row]));
  return {
    /** The SKU is looked up first. An item that is null: the line is ignored. */
    ofLine(name: ItemName): { mapping: number; item: number | null } | null {
      const [row] = itemWaits(name).flatMap((digest) => found.get(digest) ?? []);
      if (!row) return null;
      return { mapping: Number(row.id), item: row.item_id === null ? null : Number(row.item_id) };
    },
    ofLocation(connection: number, ref: string): { mapping: number; location: number } | null {
      const row = found.get(mappingDigest('location_ref', ref, connection));
      if (!row || row.location_id === null) return null;
      return { mapping: Number(row.id), location: Number(row.location_id) };
    },
  };
};

export type Mappings = Awaited<ReturnType<typeof loadMappings>>;

type ItemOrigin = Pick<ItemRow, 'id' | 'archived_at'> &
  Pick<PosMappingRow, 'made_item' | 'revived_item'> & { mapping: number | null };

/** Loads mappings that created items, after the items: a concurrent undo is seen here, or finds the lines written. */
export const loadItemOrigins = async (db: Db, items: readonly number[]) => {
  /** Items that were archived since they were found. */
  const gone = new Set<number>();
  /** The mapping that made an item, or brought it back: it decides every line that is found to be of it. */
  const makers = new Map<number, number>();
  const rows = await findInChunks<ItemOrigin>(items, (some) =>
    db
      .table(`${ITEMS_TABLE} as i`)
      .leftJoin(`${POS_MAPPINGS_TABLE} as m`, (ofItem) =>
        ofItem.on('m.item_id', 'i.id').andOnNull('m.undone_at')
      )
      .select('i.id', 'i.archived_at', 'm.id as mapping', 'm.made_item', 'm.revived_item')
      .whereIn('i.id', some)
      .where((any) => {
        any
          .whereNotNull('i.archived_at')
          .orWhere('m.made_item', true)
          .orWhere('m.revived_item', true);
      })
      // The newest one wins: one created it, and another brought it back when it was archived.
      .orderBy('m.id')
  );
  for (const { id, archived_at: at, mapping, made_item: made, revived_item: back } of rows) {
    if (at !== null) gone.add(Number(id));
    else if (mapping !== null && (made || back)) makers.set(Number(id), Number(mapping));
  }
  return { gone, makers };
};

export type ItemOrigins = Awaited<ReturnType<typeof loadItemOrigins>>;

/** Digests of the values that are mapped to the items of these names: known again, their lines are too. */
export const digestsOfMappings = async (db: Db, names: readonly ItemName[]): Promise<string[]> => {
  const skus = names.flatMap(({ sku }) => (sku === null ? [] : [skuDigest(sku)]));
  if (skus.length === 0) return [];
  return db
    .table(POS_MAPPINGS_TABLE)
    .whereIn('item_id', db.table(ITEMS_TABLE).select('id').whereIn('sku_digest', skus))
    .whereNotNull('active_digest')
    .pluck('active_digest');
};

export interface Wait {
  digest: string;
  /** `other`: nothing that an owner maps, such as the second name of a line, or a refund's sale. */
  kind: MappingKind | 'other';
  value: string | null;
  inbox: string | null;
  pieces: number;
}

/** The wait of an event for something of its connection: a location, a sale of its group. */
export const connectionWait = (connection: number): string => digestOf(`connection:${connection}`);

/** One wait a digest: its pieces are those of all lines, and what an owner can map comes first. */
export const joinWaits = (waits: readonly Wait[]): Wait[] => {
  const joined = new Map<string, Wait>();
  for (const wait of waits) {
    const known = joined.get(wait.digest);
    if (!known || known.kind === 'other') joined.set(wait.digest, { ...wait });
    else known.pieces += wait.pieces;
  }
  return [...joined.values()];
};
