import type { Core } from '@strapi/strapi';
import type { Executor } from '../database/connection';
import { insertRows } from '../database/insert-rows';
import { CHANGES_TABLE } from './catalogue/tables';

/**
 * Says that items are not what the catalogue last said of them, in the transaction that changes them:
 * without its commit nobody hears of it, and with it somebody always does
 * (docs/decisions/0021-catalogue-numbers-are-given-after-the-commit.md).
 */
export const markChanged = async (
  strapi: Core.Strapi,
  executor: Executor,
  items: readonly number[]
): Promise<void> => {
  const rows = [...new Set(items)].map((item) => ({ item_id: item }));
  await insertRows(strapi, executor, CHANGES_TABLE, rows);
};
