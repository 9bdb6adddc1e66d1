import { randomBytes } from 'node:crypto';
import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type {
  Connection,
  ConnectionInput,
  ConnectionWithSecret,
} from '../../../shared/contracts/pos';
import type { Page } from '../../../shared/contracts/webhooks';
import { currentExecutor, type Executor, inTransaction, table } from '../database/connection';
import { firstOrNotFound } from '../database/first-or-not-found';
import { isoTime, isoTimeOrNull } from '../iso-time';
import { type PageRequest, readPage } from '../pagination';
import { seal } from '../secrets/secret-box';
import { digestOf } from '../stock/digest';
import { locationFromInput } from '../stock/locations';
import { type LocationRow, LOCATIONS_TABLE } from '../stock/tables';
import { keyDigest } from './connection-lookup';
import type { CreateConnection, UpdateConnection } from './inputs';
import { generateKey, generateSecret } from './rules/credentials';
import {
  type ConnectionRow,
  CONNECTIONS_TABLE,
  type MappedLocation,
  mappedLocations,
} from './tables';
import { wakeConnection } from './waits';

/** Keeps connections; specification 2, Connection. Unknown ids are a NotFoundError (404). */
export interface ConnectionsService {
  list(page: PageRequest): Promise<Page<Connection>>;
  get(id: number): Promise<Connection>;
  create(input: CreateConnection): Promise<ConnectionWithSecret>;
  update(id: number, input: UpdateConnection): Promise<Connection>;
  /** Its events stay in the log; its key is unknown from now on. */
  remove(id: number): Promise<void>;
  /** A new secret; the key stays. The old secret stops working at once. */
  rotateSecret(id: number): Promise<{ secret: string }>;
  revoke(id: number): Promise<Connection>;
}

const groupColumns = (group: string | null) => ({
  group_name: group,
  group_digest: group === null ? null : digestOf(`group:${group}`),
});

const toConnection = (
  row: ConnectionRow,
  locations: ReadonlyMap<number, LocationRow>
): Connection => ({
  id: Number(row.id),
  name: row.name,
  type: 'Generic webhook',
  key: row.key,
  scopes: JSON.parse(row.scopes) as Connection['scopes'],
  mode: row.mode,
  group: row.group_name,
  locations: mappedLocations(row).map(({ ref, location: id }) => ({
    ref,
    location: { id, code: locations.get(id)?.code ?? '', name: locations.get(id)?.name ?? '' },
  })),
  revoked_at: isoTimeOrNull(row.revoked_at),
  last_seen_at: isoTimeOrNull(row.last_seen_at),
  clock_skew_seconds: row.clock_skew_seconds === null ? null : Number(row.clock_skew_seconds),
  last_error: row.last_error,
  last_error_at: isoTimeOrNull(row.last_error_at),
  created_at: isoTime(Number(row.created_at)),
  updated_at: isoTime(Number(row.updated_at)),
});

export const createConnectionsService = ({
  strapi,
}: {
  strapi: Core.Strapi;
}): ConnectionsService => {
  const rows = (executor: Executor): Knex.QueryBuilder =>
    table(strapi, executor, CONNECTIONS_TABLE).whereNull('deleted_at');

  const find = (executor: Executor, id: number): Promise<ConnectionRow> =>
    firstOrNotFound(rows(executor).where({ id }), 'Connection');

  const locationsById = async (executor: Executor): Promise<Map<number, LocationRow>> => {
    const found = (await table(strapi, executor, LOCATIONS_TABLE).select('*')) as LocationRow[];
    return new Map(found.map((row) => [Number(row.id), row]));
  };

  const shaped = async (executor: Executor, row: ConnectionRow): Promise<Connection> =>
    toConnection(row, await locationsById(executor));

  const resolve = async (
    executor: Executor,
    locations: NonNullable<ConnectionInput['locations']>
  ): Promise<MappedLocation[]> => {
    const mapped: MappedLocation[] = [];
    for (const [index, { ref, location }] of locations.entries()) {
      const field = `locations.${index}.location`;
      const row = await locationFromInput(strapi, executor, location, field);
      mapped.push({ ref, location: Number(row.id) });
    }
    return mapped;
  };

  const change = (id: number, values: Record<string, unknown>): Promise<ConnectionRow> =>
    inTransaction(strapi, async ({ trx }) => {
      await find(trx, id);
      await rows(trx)
        .where({ id })
        .update({ ...values, updated_at: Date.now() });
      return find(trx, id);
    });

  return {
    async list(page) {
      const executor = await currentExecutor(strapi);
      const query = rows(executor).select('*').orderBy('id');
      const { rows: found, meta } = await readPage<ConnectionRow>(executor, query, page);
      const locations = await locationsById(executor);
      return { data: found.map((row) => toConnection(row, locations)), meta };
    },

    async get(id) {
      const executor = await currentExecutor(strapi);
      return shaped(executor, await find(executor, id));
    },

    create: ({ name, scopes, mode, group, locations }) =>
      inTransaction(strapi, async ({ trx }) => {
        const key = generateKey(randomBytes);
        const secret = generateSecret(randomBytes);
        const at = Date.now();
        await table(strapi, trx, CONNECTIONS_TABLE).insert({
          name,
          key,
          key_digest: keyDigest(key),
          secret: seal(strapi, secret),
          scopes: JSON.stringify(scopes),
          mode,
          ...groupColumns(group ?? null),
          locations: JSON.stringify(await resolve(trx, locations)),
          created_at: at,
          updated_at: at,
        });
        const row = (await rows(trx)
          .where({ key_digest: keyDigest(key) })
          .first()) as ConnectionRow;
        return { ...(await shaped(trx, row)), secret };
      }),

    update: (id, { name, scopes, mode, group, locations }) =>
      inTransaction(strapi, async ({ trx }) => {
        const row = await change(id, {
          ...(name !== undefined && { name }),
          ...(scopes !== undefined && { scopes: JSON.stringify(scopes) }),
          ...(mode !== undefined && { mode }),
          ...(group !== undefined && groupColumns(group)),
          ...(locations !== undefined && {
            locations: JSON.stringify(await resolve(trx, locations)),
          }),
        });
        // A new location or group may be what records of this connection were waiting for.
        if (locations !== undefined || group !== undefined) await wakeConnection(strapi, trx, id);
        return shaped(trx, row);
      }),

    remove: (id) =>
      inTransaction(strapi, async ({ trx }) => {
        await find(trx, id);
        const at = Date.now();
        await rows(trx).where({ id }).update({ deleted_at: at, revoked_at: at, updated_at: at });
      }),

    async rotateSecret(id) {
      const secret = generateSecret(randomBytes);
      await change(id, { secret: seal(strapi, secret) });
      return { secret };
    },

    async revoke(id) {
      const executor = await currentExecutor(strapi);
      const { revoked_at: before } = await find(executor, id);
      const row = await change(id, { revoked_at: before ?? Date.now() });
      return shaped(executor, row);
    },
  };
};
