import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Knex } from 'knex';
import type {
  Connection,
  ConnectionInput,
  ConnectionSummary,
  ConnectionWithSecret,
} from '../../../../shared/contracts/pos';
import type { Page } from '../../../../shared/contracts/webhooks';
import { firstOrNotFound } from '../../database/retry';
import { documentsOf } from '../../database/tables/internal-types';
import { digestOf, isoTime, isoTimeOrNull } from '../../runtime/text';
import { readList, type ViewedPageRequest } from '../../http/pagination';
import { seal } from '../../secrets/secret-box';
import type { LocationRow } from '../../stock/tables';
import { locationNamed, locationSummary, noLocation, readLocations } from '../../stock/locations';
import { definedOf, fieldErrors, type FieldProblem } from '../../http/validation';
import { disabledBecause } from '../../webhooks/webhook';
import { type MappedLocation, mappedLocations, settleArrivedConnections } from '../connections';
import { keyDigest } from '../intake/authentication';
import { POS_REFUSALS_TABLE } from '../intake/refusals';
import type { CreateConnection, UpdateConnection } from './inputs';
import { generateKey, generateSecret } from '../rules/credentials';
import { CONNECTION, type ConnectionRow, CONNECTIONS_TABLE } from '../tables';
import { timeZoneOf } from '../sales-figures';
import { regroup, wakeConnection } from '../processing/waits';
import { openHoursOf, silentSince } from '../silence';
import type { App } from '../../app';
import type { Db, Tx } from '../../database/db';

const groupColumns = (group: string | null) => ({
  group,
  group_digest: group === null ? null : digestOf(`group:${group}`),
});

/** @param silentAt start of the reported silence, epoch milliseconds */
const toConnection = (
  row: ConnectionRow,
  locations: ReadonlyMap<number, LocationRow>,
  silentAt: number | null
): Connection => ({
  id: Number(row.id),
  name: row.name,
  type: row.type,
  key: row.key,
  scopes: JSON.parse(row.scopes) as Connection['scopes'],
  mode: row.mode,
  group: row.group_name,
  locations: mappedLocations(row).map(({ ref, location: id }) => ({
    ref,
    location: locationSummary(id, locations.get(id)),
  })),
  customers: row.customers ?? 'match',
  country: row.country,
  expected_every_minutes:
    row.expected_every_minutes === null ? null : Number(row.expected_every_minutes),
  open_hours: openHoursOf(row),
  silent_since: isoTimeOrNull(silentAt),
  active: Boolean(row.active),
  disabled_reason: row.disabled_reason,
  disabled_because: disabledBecause(row.disabled_reason),
  revoked_at: isoTimeOrNull(row.revoked_at),
  last_seen_at: isoTimeOrNull(row.last_seen_at),
  clock_skew_seconds: row.clock_skew_seconds === null ? null : Number(row.clock_skew_seconds),
  last_error: row.last_error,
  last_error_at: isoTimeOrNull(row.last_error_at),
  created_at: isoTime(Number(row.created_at)),
  updated_at: isoTime(Number(row.updated_at)),
});

/** A new expectation invalidates an earlier alarm. Time before a till was live and active does not count as silence. */
const watchColumns = (before: ConnectionRow, input: UpdateConnection) => {
  const { expected_every_minutes: minutes, open_hours: hours, mode, active } = input;
  const isAnother =
    (minutes !== undefined && minutes !== before.expected_every_minutes) ||
    (hours !== undefined && !isDeepStrictEqual(hours, openHoursOf(before)));
  const begins = (mode === 'live' && before.mode !== 'live') || (active && !before.active);
  return {
    ...(isAnother && { silent_since: null }),
    ...(begins && { watched_from: Date.now() }),
  };
};

const rows = (db: Db): Knex.QueryBuilder => db.table(CONNECTIONS_TABLE).whereNull('deleted_at');

const find = (db: Db, id: number): Promise<ConnectionRow> =>
  firstOrNotFound(rows(db).where({ id }), 'Connection');

const resolve = async (db: Db, locations: NonNullable<ConnectionInput['locations']>) => {
  const mapped: MappedLocation[] = [];
  const wrong: FieldProblem[] = [];
  for (const [index, { ref, location }] of locations.entries()) {
    const row = await locationNamed(db, location);
    if (row) mapped.push({ ref, location: Number(row.id) });
    else wrong.push({ path: `locations.${index}.location`, ...noLocation(location) });
  }
  if (wrong.length > 0) throw fieldErrors(wrong);
  return mapped;
};

const LOCATIONS_SHOWN = 3;

const toSummary = (connection: Connection): ConnectionSummary => {
  const { id, name, mode, active, revoked_at, last_seen_at, clock_skew_seconds } = connection;
  const { last_error, last_error_at } = connection;
  const names = [...new Set(connection.locations.map(({ location }) => location.name))];
  return {
    ...{ id, name, mode, active, revoked_at, last_seen_at, clock_skew_seconds },
    ...{ last_error, last_error_at },
    locations: names.slice(0, LOCATIONS_SHOWN),
    location_count: names.length,
  };
};

/** Keeps connections; docs/contract-pos.md#connections. Unknown ids are a NotFoundError (404). */
export class ConnectionsService {
  constructor(private readonly app: App) {}

  async list({ view, ...page }: ViewedPageRequest): Promise<Page<Connection | ConnectionSummary>> {
    await settleArrivedConnections(this.app);
    const db = await this.app.db.current();
    const query = rows(db).select('*').orderBy('id');
    const locations = await readLocations(db);
    return readList(db, query, page, (row: ConnectionRow) => {
      const connection = toConnection(row, locations, this.silentAt(row));
      return view === 'summary' ? toSummary(connection) : connection;
    });
  }

  async get(id: number): Promise<Connection> {
    await settleArrivedConnections(this.app);
    const db = await this.app.db.current();
    return this.shaped(db, await find(db, id));
  }

  create({ group = null, locations, ...input }: CreateConnection): Promise<ConnectionWithSecret> {
    return this.app.db.retrying(async (tx) => {
      const key = generateKey(randomBytes);
      const secret = generateSecret(randomBytes);
      const at = Date.now();
      const { id } = await documentsOf(this.app.strapi, CONNECTION).create({
        data: {
          ...input,
          ...groupColumns(group),
          key,
          key_digest: keyDigest(key),
          secret: seal(this.app, secret),
          locations: await resolve(tx, locations),
          created_at: at,
          updated_at: at,
        },
      });
      return { ...(await this.shaped(tx, await find(tx, Number(id)))), secret };
    });
  }

  async update(id: number, input: UpdateConnection): Promise<Connection> {
    const { group, locations, ...rest } = input;
    await settleArrivedConnections(this.app);
    return this.app.db.retrying(async (tx) => {
      // Locked before anything is read: a record processed meanwhile is seen, or sees it.
      const found = rows(tx).where({ id }).forUpdate();
      const before = await firstOrNotFound<ConnectionRow>(found, 'Connection');
      const row = await this.change(id, {
        ...definedOf(rest),
        ...(rest.active !== undefined && { disabled_reason: null }),
        ...watchColumns(before, input),
        ...(group !== undefined && groupColumns(group)),
        ...(locations !== undefined && { locations: await resolve(tx, locations) }),
      });
      if (row.group_digest !== before.group_digest) {
        await regroup(tx, this.app, id, [before.group_digest, row.group_digest]);
      }
      // A new location or group may be what records of this connection were waiting for.
      if (locations !== undefined || group !== undefined) await wakeConnection(tx, this.app, id);
      return this.shaped(tx, row);
    });
  }

  /** Its events stay in the log; its key is unknown from now on. */
  remove(id: number): Promise<void> {
    return this.app.db.retrying(async (tx) => {
      const at = Date.now();
      await this.write(tx, id, { deleted_at: at, revoked_at: at, updated_at: at });
      await tx.table(POS_REFUSALS_TABLE).where({ connection_id: id }).delete();
    });
  }

  /** A new secret; the key stays. The old secret stops working at once. */
  async rotateSecret(id: number): Promise<{ secret: string }> {
    const secret = generateSecret(randomBytes);
    await this.change(id, { secret: seal(this.app, secret) });
    return { secret };
  }

  async revoke(id: number): Promise<Connection> {
    const db = await this.app.db.current();
    const { revoked_at: before } = await find(db, id);
    return this.shaped(db, await this.change(id, { revoked_at: before ?? Date.now() }));
  }

  private silentAt(row: ConnectionRow): number | null {
    return silentSince(row, timeZoneOf(this.app), this.app.clock.now());
  }

  private async shaped(db: Db, row: ConnectionRow): Promise<Connection> {
    return toConnection(row, await readLocations(db), this.silentAt(row));
  }

  private change(id: number, values: Record<string, unknown>): Promise<ConnectionRow> {
    return this.app.db.retrying(async (tx) => {
      await this.write(tx, id, { ...values, updated_at: Date.now() });
      return find(tx, id);
    });
  }

  private async write(tx: Tx, id: number, data: Record<string, unknown>): Promise<void> {
    const { document_id: documentId } = await find(tx, id);
    await documentsOf(this.app.strapi, CONNECTION).update({ documentId, data });
  }
}
