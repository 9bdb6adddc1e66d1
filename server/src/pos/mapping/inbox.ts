import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { Mapping, Resolved, UnknownValue } from '../../../../shared/contracts/pos-mapping';
import type { Page } from '../../../../shared/contracts/webhooks';
import { type Executor, table } from '../../database/connection';
import { inUniqueTransaction } from '../../database/errors/duplicate';
import { firstOrNotFound } from '../../database/errors/first-or-not-found';
import type { PageRequest } from '../../http/pagination';
import { fieldError } from '../../http/validation';
import type { Big } from '../../stock/tables';
import { wakeTwice } from '../processing/waits';
import {
  type ConnectionRow,
  CONNECTIONS_TABLE,
  POS_MAPPINGS_TABLE,
  POS_WAITS_TABLE,
  type PosMappingRow,
} from '../tables';
import { type Destination, destinationOf } from './destinations';
import { endMapping } from './end-mapping';
import { listMappings, listUnknown } from './inbox-lists';
import type { InboxQuery, Resolve } from './inputs';
import { mappingDigest } from './mappings';
import { connectionWait } from './wait';
import { refusal } from '../../runtime/refusal';

/** What tills sent and the site does not know; docs/tills.md#mapping-what-is-unknown. */
export interface MappingInboxService {
  /** Those of the latest records first. */
  list(query: InboxQuery): Promise<Page<UnknownValue>>;
  /**
   * Says what a value means, for the records that wait and for later ones.
   * @param madeBy  who says it
   * @throws ValidationError (400) that names what there is none of
   */
  resolve(input: Resolve, madeBy: string | null): Promise<Resolved>;
  /**
   * Takes a mapping back, with those of the same value that it replaced: their records wait again, and
   * what they did to the shelves is reversed. An item that one of them made or brought back is archived.
   * One that was undone already stays so.
   * @throws NotFoundError (404)
   */
  undo(id: number): Promise<{ id: number; records: number }>;
  /** The mappings that hold, newest first. */
  mappings(page: PageRequest): Promise<Page<Mapping>>;
}

export const createMappingInboxService = ({
  strapi,
}: {
  strapi: Core.Strapi;
}): MappingInboxService => {
  const mappings = (executor: Executor): Knex.QueryBuilder =>
    table(strapi, executor, POS_MAPPINGS_TABLE);

  /** What waits for a value now. */
  const reach = async (executor: Executor, digest: string): Promise<Omit<Resolved, 'id'>> => {
    const [row] = (await table(strapi, executor, POS_WAITS_TABLE)
      .where({ inbox_digest: digest })
      .count({ records: '*' })
      .sum({ pieces: 'pieces' })) as { records: Big; pieces: Big | null }[];
    return { records: Number(row?.records ?? 0), pieces: Number(row?.pieces ?? 0) };
  };

  /** One that was deleted, too: its records still wait. */
  const connectionOf = async (executor: Executor, id: number): Promise<void> => {
    const row = (await table(strapi, executor, CONNECTIONS_TABLE)
      .where({ id })
      .forUpdate()
      .first()) as ConnectionRow | undefined;
    if (!row)
      throw fieldError('connection', refusal(`there is no connection ${id}`, 'no_connection'));
  };

  const store = async (
    trx: Executor,
    { kind, value, connection }: Resolve,
    digest: string,
    destination: Destination,
    madeBy: string | null
  ): Promise<number> => {
    await mappings(trx).insert({
      kind,
      value,
      active_digest: digest,
      connection_id: connection ?? null,
      ...destination,
      made_by: madeBy,
      created_at: Date.now(),
    });
    const row = (await mappings(trx).where({ active_digest: digest }).first()) as PosMappingRow;
    return Number(row.id);
  };

  /** Earlier mappings of the same value: their records stayed where they were, and named it too. */
  const replacedBy = async (
    trx: Executor,
    { id, kind, value, connection_id: connection }: PosMappingRow
  ): Promise<PosMappingRow[]> => {
    const rows = (await mappings(trx)
      .where({ kind, value, connection_id: connection })
      .where('id', '<', id)
      .whereNull('undone_at')
      .orderBy('id', 'desc')
      .forUpdate()) as PosMappingRow[];
    // A collation may take two values for one.
    return rows.filter((row) => row.value === value);
  };

  return {
    list: (query) => listUnknown(strapi, query),

    resolve: (input, madeBy) =>
      inUniqueTransaction(strapi, async ({ trx }) => {
        const { kind, value, connection, preview } = input;
        // Locked first: a record that is being worked on beside it has begun to wait by then.
        if (connection !== undefined) await connectionOf(trx, connection);
        const digest = mappingDigest(kind, value, connection ?? null);
        const reached = await reach(trx, digest);
        const destination = await destinationOf(strapi, trx, input, !preview);
        if (preview) return { id: null, ...reached };
        const before = (await mappings(trx).where({ active_digest: digest }).first()) as
          PosMappingRow | undefined;
        if (before) {
          // Its records stay where they are: from now on the value means something else.
          await mappings(trx).where({ id: before.id }).update({ active_digest: null });
        }
        const id = await store(trx, input, digest, destination, madeBy);
        const waited = connection === undefined ? digest : connectionWait(connection);
        await wakeTwice(strapi, trx, [waited], 'mapping');
        return { id, ...reached };
      }),

    undo: (id) =>
      inUniqueTransaction(strapi, async ({ trx }) => {
        const row = await firstOrNotFound<PosMappingRow>(
          mappings(trx).where({ id }).forUpdate(),
          'Mapping'
        );
        if (row.undone_at !== null) return { id, records: 0 };
        const records = new Set<number>();
        for (const one of [row, ...(await replacedBy(trx, row))]) {
          for (const record of await endMapping(strapi, trx, one)) records.add(record);
        }
        return { id, records: records.size };
      }),

    mappings: (request) => listMappings(strapi, request),
  };
};
