import type { Core } from '@strapi/strapi';
import { currentExecutor, type Executor, table } from '../database/connection';
import { fieldError } from '../http/validation';
import { digestOf, type LocationRow, LOCATIONS_TABLE } from './tables';
import { type Refusal, refusal } from '../runtime/refusal';

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

/** The location that a client names by id or by code, or the default one; undefined: none such. */
export const locationNamed = async (
  strapi: Core.Strapi,
  executor: Executor,
  named: number | string | undefined
): Promise<LocationRow | undefined> => {
  if (named === undefined) return defaultLocation(strapi, executor);
  const find = async (where: Partial<LocationRow>): Promise<LocationRow | undefined> =>
    (await table(strapi, executor, LOCATIONS_TABLE).where(where).first()) as
      LocationRow | undefined;
  if (typeof named === 'number') return find({ id: named });
  const byCode = await find({ code_digest: locationDigest(named) });
  return byCode ?? (/^[1-9]\d{0,8}$/.test(named) ? find({ id: Number(named) }) : undefined);
};

/** What is said of a location that a client named and that there is none of. */
export const noLocation = (named: number | string | undefined): Refusal =>
  refusal(`there is no location ${named}`, 'no_location', { name: named ?? '' });

/** @throws ValidationError (400) that names the field where there is no such location. */
export const locationFromInput = async (
  strapi: Core.Strapi,
  executor: Executor,
  named: number | string | undefined,
  field: string
): Promise<LocationRow> => {
  const row = await locationNamed(strapi, executor, named);
  if (!row) throw fieldError(field, noLocation(named));
  return row;
};
