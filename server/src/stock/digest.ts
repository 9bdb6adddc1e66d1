import { createHash } from 'node:crypto';

/**
 * What texts that must be compared byte for byte are found by: a MySQL collation takes `A1` and
 * `a1` for the same, and PostgreSQL may normalise; hex of a hash means the same everywhere.
 */
export const digestOf = (text: string): string =>
  createHash('sha256').update(text, 'utf8').digest('hex');

export const skuDigest = (sku: string): string => digestOf(`sku:${sku}`);
