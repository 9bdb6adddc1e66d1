import type { Core } from '@strapi/strapi';
import { currentExecutor, type Detached, table } from '../../database/connection';
import { digestOf } from '../../stock/digest';
import { ITEMS_TABLE, LEVELS_TABLE, LOCATIONS_TABLE, MOVEMENTS_TABLE } from '../../stock/tables';
import { isMissingTable, notReady } from './answers';
import { hasArrived, settleArrivedConnections } from '../processing/arrivals';
import { createBatcher } from './batcher';
import {
  type ConnectionRow,
  CONNECTIONS_TABLE,
  POS_EVENTS_TABLE,
  POS_WAITS_TABLE,
} from '../tables';

export const keyDigest = (key: string): string => digestOf(`key:${key}`);

const READY_FOR_MS = 1000;

const TABLES = [
  CONNECTIONS_TABLE,
  POS_EVENTS_TABLE,
  POS_WAITS_TABLE,
  ITEMS_TABLE,
  LOCATIONS_TABLE,
  LEVELS_TABLE,
  MOVEMENTS_TABLE,
];

export interface ConnectionLookup {
  /** @throws Refusal `not_ready` (503) where a table is missing. Asks at most once a second. */
  requireReady(): Promise<void>;
  /** The connection of a key. Always from the database: another node may just have revoked it. */
  find(key: string | undefined): Promise<ConnectionRow | null>;
}

export const createConnectionLookup = (
  strapi: Core.Strapi,
  detached: Detached
): ConnectionLookup => {
  let readyUntil = 0;
  let checking: Promise<void> | null = null;

  const check = async (): Promise<void> => {
    const executor = await currentExecutor(strapi);
    try {
      for (const name of TABLES) await table(strapi, executor, name).select('id').limit(1);
      readyUntil = Date.now() + READY_FOR_MS;
    } catch (error) {
      throw isMissingTable(error) ? notReady() : error;
    }
  };

  const load = createBatcher<string, ConnectionRow | null>(detached, 200, async (digests) => {
    const executor = await currentExecutor(strapi);
    const read = async (): Promise<ConnectionRow[]> =>
      table(strapi, executor, CONNECTIONS_TABLE)
        .select('*')
        .whereIn('key_digest', [...new Set(digests)]);
    let rows = await read();
    if (rows.some((row) => hasArrived(strapi, row))) {
      await settleArrivedConnections(strapi);
      rows = await read();
    }
    const found = new Map(rows.map((row) => [row.key_digest, row]));
    return digests.map((digest) => ({ ok: true, value: found.get(digest) ?? null }));
  });

  return {
    async requireReady() {
      if (Date.now() < readyUntil) return;
      checking ??= detached(check).finally(() => {
        checking = null;
      });
      await checking;
    },
    // A digest of nothing is looked up too: how long it takes must not tell.
    find: (key) => load(keyDigest(key ?? '')),
  };
};
