import type {
  Item,
  Level,
  Location,
  LocationSummary,
  Movement,
} from '../../../shared/contracts/stock';
import { isoTime, isoTimeOrNull } from '../runtime/text';
import type { ItemRow, LevelRow, LocationRow, MovementRow } from './tables';

export const toLocation = (row: LocationRow): Location => ({
  id: Number(row.id),
  name: row.name,
  code: row.code,
  is_default: Boolean(row.is_default),
  created_at: isoTime(Number(row.created_at)),
  updated_at: isoTime(Number(row.updated_at)),
});

export const toItem = (row: ItemRow): Item => ({
  id: Number(row.id),
  sku: row.sku,
  gtin: row.gtin,
  name: row.name,
  low_at: Number(row.low_at ?? 0),
  archived_at: isoTimeOrNull(row.archived_at ?? null),
  created_at: isoTime(Number(row.created_at)),
  updated_at: isoTime(Number(row.updated_at)),
});

/** A level joined with its item and location. */
export type JoinedLevel = LevelRow &
  Pick<ItemRow, 'sku' | 'gtin' | 'name'> & { location_code: string; location_name: string };

export const summaryOf = (row: {
  location_id: number;
  location_code: string;
  location_name: string;
}): LocationSummary => ({
  id: Number(row.location_id),
  code: row.location_code,
  name: row.location_name,
});

export const toLevel = (row: JoinedLevel): Level => ({
  id: Number(row.id),
  item_id: Number(row.item_id),
  sku: row.sku,
  gtin: row.gtin,
  name: row.name,
  location: summaryOf(row),
  quantity: Number(row.quantity),
  opening: Number(row.opening),
  low_at: row.low_at === null ? null : Number(row.low_at),
  last_counted_at: isoTimeOrNull(row.count_at),
});

export const toMovement = (row: MovementRow): Movement => ({
  id: Number(row.id),
  level_id: Number(row.level_id),
  type: row.type,
  effective_at: isoTime(Number(row.at)),
  quantity: Number(row.quantity),
  effect: Number(row.effect),
  reason: row.reason,
  quantity_after: Number(row.quantity_after),
  note: row.note,
  event_id: row.event_id === null ? null : Number(row.event_id),
  document_id: row.document_id === null ? null : Number(row.document_id),
  made_by: row.made_by,
  undone: Boolean(row.undone),
  created_at: isoTime(Number(row.created_at)),
});
