import type { Core } from '@strapi/strapi';
import type { TillMovement } from '../../../../shared/contracts/till-answers';
import { type Executor, table } from '../../database/connection';
import type { LedgerLine } from '../../stock/ledger';
import { ITEMS_TABLE } from '../../stock/tables';
import type { MappedLocation } from '../tables';

/** What a connection is told of movements. */
export interface TellingRules {
  mapped: readonly MappedLocation[];
  /** It has the scope `stock:read`. */
  withQuantity: boolean;
}

/** A location as the connection names it; null where it has no name for it. */
export const refOf = (mapped: readonly MappedLocation[], location: number): string | null =>
  mapped.find((one) => one.location === location)?.ref ?? null;

type Line = Pick<LedgerLine, 'location' | 'quantity' | 'effect' | 'quantityAfter'>;

export const toldMovement = (
  sku: string,
  { location, quantity, effect, quantityAfter }: Line,
  { mapped, withQuantity }: TellingRules
): TillMovement => ({
  sku,
  location_ref: refOf(mapped, location),
  quantity,
  effect,
  ...(withQuantity && { quantity_after: quantityAfter }),
});

const CHUNK = 500;

/** SKUs of items, by id. */
export const skusOf = async (
  strapi: Core.Strapi,
  executor: Executor,
  items: readonly number[]
): Promise<Map<number, string>> => {
  const ids = [...new Set(items)];
  const skus = new Map<number, string>();
  for (let start = 0; start < ids.length; start += CHUNK) {
    const rows = (await table(strapi, executor, ITEMS_TABLE)
      .select('id', 'sku')
      .whereIn('id', ids.slice(start, start + CHUNK))) as { id: number; sku: string }[];
    for (const { id, sku } of rows) skus.set(Number(id), sku);
  }
  return skus;
};

/** Lines of the ledger as tills are told them, in their order. */
export const toldMovements = async (
  strapi: Core.Strapi,
  executor: Executor,
  lines: readonly LedgerLine[],
  rules: TellingRules
): Promise<TillMovement[]> => {
  const skus = await skusOf(
    strapi,
    executor,
    lines.map(({ item }) => item)
  );
  return lines.map((line) => toldMovement(skus.get(line.item) ?? line.sku ?? '', line, rules));
};
