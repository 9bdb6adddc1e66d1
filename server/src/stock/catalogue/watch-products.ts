import type { Core, UID } from '@strapi/strapi';
import { getOptions } from '../../config';
import { currentExecutor, table } from '../../database/connection';
import { skuDigest } from '../items';
import { ITEMS_TABLE } from '../tables';
import { markChanged } from './changes';

type Entry = Record<string, unknown>;

/** What the host tells before and after a write; `state` is passed from the one to the other. */
interface WriteEvent {
  params: { where?: unknown; data?: unknown };
  result?: unknown;
  state: Record<string, unknown>;
}

const STATE = 'switchboardCatalogueSkus';
const CHUNK = 500;

const markSkus = async (strapi: Core.Strapi, skus: readonly string[]): Promise<void> => {
  const executor = await currentExecutor(strapi);
  const digests = [...new Set(skus)].map(skuDigest);
  for (let start = 0; start < digests.length; start += CHUNK) {
    const rows = (await table(strapi, executor, ITEMS_TABLE)
      .select('id')
      .whereIn('sku_digest', digests.slice(start, start + CHUNK))) as { id: number }[];
    await markChanged(
      strapi,
      executor,
      rows.map(({ id }) => Number(id))
    );
  }
};

/**
 * Has the catalogue tell items again whose product got another name or price, or is gone. In the
 * transaction of the write, as long as it has one: the host's documents do.
 */
export const watchCatalogueProducts = (strapi: Core.Strapi): void => {
  const mapping = getOptions(strapi).stock;
  if (!mapping || (mapping.name === undefined && mapping.price === undefined)) return;
  const { contentType, sku, name, price, currency } = mapping;
  const uid = contentType as UID.ContentType;
  const told = [sku, name, price, currency, 'publishedAt'].filter((one) => one !== undefined);

  const skusOf = (entries: readonly unknown[]): string[] =>
    (entries as (Entry | null | undefined)[]).flatMap((entry) => {
      const value = entry?.[sku];
      return typeof value === 'string' || typeof value === 'number' ? [String(value)] : [];
    });

  /** The ledger writes quantities into products all the time: they are not what is told of them. */
  const isTold = ({ params: { data } }: WriteEvent): boolean =>
    data === undefined || told.some((field) => field in (data as Entry));

  const before = async (event: WriteEvent): Promise<void> => {
    if (!isTold(event)) return;
    const entries = (await strapi.db
      .query(uid)
      .findMany({ where: event.params.where as object, select: [sku] })) as Entry[];
    event.state[STATE] = skusOf(entries);
  };
  const after = async (event: WriteEvent): Promise<void> => {
    const known = event.state[STATE] as string[] | undefined;
    if (known === undefined) return;
    await markSkus(strapi, [...known, ...skusOf([event.result])]);
  };

  strapi.db.lifecycles.subscribe({
    models: [uid],
    beforeUpdate: before,
    beforeUpdateMany: before,
    beforeDelete: before,
    beforeDeleteMany: before,
    afterUpdate: after,
    afterUpdateMany: after,
    afterDelete: after,
    afterDeleteMany: after,
    afterCreate: (event: WriteEvent) => markSkus(strapi, skusOf([event.result])),
    afterCreateMany: (event: WriteEvent) =>
      markSkus(strapi, skusOf((event.params.data ?? []) as unknown[])),
  });
};
