import type { LocationSummary } from '../../../shared/contracts/stock';
import { fieldError } from '../http/validation';
import { type LocationRow, LOCATIONS_TABLE } from './tables';
import { type Refusal, refusal } from '../runtime/refusal';
import { digestOf } from '../runtime/text';
import type { App } from '../app';
import type { Db } from '../database/db';

export const locationDigest = (code: string): string => digestOf(`location:${code}`);

export const DEFAULT_LOCATION = { code: 'main', name: 'Main store' };

/** The location of stock that names none. Made at boot; there is exactly one. */
export const defaultLocation = async (db: Db): Promise<LocationRow> =>
  (await db
    .table(LOCATIONS_TABLE)
    .where({ is_default: true })
    .orderBy('id')
    .first()) as LocationRow;

/** Several nodes may boot at once; the code's uniqueness lets one of them win. */
export const ensureDefaultLocation = async (app: App): Promise<void> => {
  const db = await app.db.current();
  if (await defaultLocation(db)) return;
  const at = Date.now();
  const digest = locationDigest(DEFAULT_LOCATION.code);
  const times = { created_at: at, updated_at: at };
  const made = { ...DEFAULT_LOCATION, code_digest: digest, is_default: true, ...times };
  await db.insert(LOCATIONS_TABLE, [made], { unique: ['code_digest'], then: 'ignore' });
};

export const readLocations = async (db: Db): Promise<Map<number, LocationRow>> => {
  const rows: LocationRow[] = await db.table(LOCATIONS_TABLE);
  return new Map(rows.map((row) => [Number(row.id), row]));
};

export const locationSummary = (id: number, row: LocationRow | undefined): LocationSummary => ({
  id,
  code: row?.code ?? '',
  name: row?.name ?? '',
});

/** The location that a client names by id or by code, or the default one; undefined: none such. */
export const locationNamed = async (db: Db, named: number | string | undefined) => {
  if (named === undefined) return defaultLocation(db);
  const find = async (where: Partial<LocationRow>): Promise<LocationRow | undefined> =>
    (await db.table(LOCATIONS_TABLE).where(where).first()) as LocationRow | undefined;
  if (typeof named === 'number') return find({ id: named });
  const byCode = await find({ code_digest: locationDigest(named) });
  return byCode ?? (/^[1-9]\d{0,8}$/.test(named) ? find({ id: Number(named) }) : undefined);
};

/** The error for a location that a client named and that does not exist. */
export const noLocation = (named: number | string | undefined): Refusal =>
  refusal(`there is no location ${named}`, 'no_location', { name: named ?? '' });

/** @throws ValidationError (400) that names the field if there is no such location. */
export const locationFromInput = async (
  db: Db,
  named: number | string | undefined,
  field: string
): Promise<LocationRow> => {
  const row = await locationNamed(db, named);
  if (!row) throw fieldError(field, noLocation(named));
  return row;
};
