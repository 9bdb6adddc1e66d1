import type { Core } from '@strapi/strapi';
import { currentExecutor, type Executor, table } from '../database/connection';
import { fieldError } from '../validation';
import { digestOf } from './digest';
import { type LocationRow, LOCATIONS_TABLE } from './tables';

export const locationDigest = (code: string): string => digestOf(`location:${code}`);

export const DEFAULT_LOCATION = { code: 'main', name: 'Main store' };

/** The location of stock that names none. Made at boot; there is exactly one. */
export const defaultLocation = async (
  strapi: Core.Strapi,
  executor: Executor
): Promise<LocationRow> =>
  (await table(strapi, executor, LOCATIONS_TABLE)
    .where({ is_default: true })
    .orderBy('id')
    .first()) as LocationRow;

/** Several nodes may boot at once; the code's uniqueness lets one of them win. */
export const ensureDefaultLocation = async (strapi: Core.Strapi): Promise<void> => {
  const executor = await currentExecutor(strapi);
  if (await defaultLocation(strapi, executor)) return;
  const at = Date.now();
  await table(strapi, executor, LOCATIONS_TABLE)
    .insert({
      ...DEFAULT_LOCATION,
      code_digest: locationDigest(DEFAULT_LOCATION.code),
      is_default: true,
      created_at: at,
      updated_at: at,
    })
    .onConflict('code_digest')
    .ignore();
};

/**
 * The location that a client names by id or by code, or the default one.
 * @throws ValidationError (400) that names the field where there is none such.
 */
export const locationFromInput = async (
  strapi: Core.Strapi,
  executor: Executor,
  named: number | string | undefined,
  field: string
): Promise<LocationRow> => {
  if (named === undefined) return defaultLocation(strapi, executor);
  const where = typeof named === 'number' ? { id: named } : { code_digest: locationDigest(named) };
  let row = (await table(strapi, executor, LOCATIONS_TABLE).where(where).first()) as
    LocationRow | undefined;
  if (!row && typeof named === 'string' && /^[1-9]\d{0,8}$/.test(named)) {
    row = (await table(strapi, executor, LOCATIONS_TABLE)
      .where({ id: Number(named) })
      .first()) as LocationRow | undefined;
  }
  if (!row) throw fieldError(field, `there is no location ${named}`);
  return row;
};
