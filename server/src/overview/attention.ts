import type { Knex } from 'knex';
import type { Context } from 'koa';
import type {
  Attention,
  FirstSteps,
  RecordCounts,
  TroubledTill,
} from '../../../shared/contracts/overview';
import { isAllowed } from '../access/current-admin-user';
import type { App } from '../app';
import { KIND_DEFINITIONS } from '../crm/mapping/kinds';
import type { Db } from '../database/db';
import { COUNT_LIMIT, countUpToLimit } from '../http/pagination';
import { rejectedImports } from '../imports/jobs';
import { POS_REFUSALS_TABLE } from '../pos/intake/refusals';
import { EVENT_KINDS, type EventState } from '../pos/rules/records';
import { timeZoneOf } from '../pos/sales-figures';
import { silentSince } from '../pos/silence';
import { type ConnectionRow, CONNECTIONS_TABLE, POS_EVENTS_TABLE } from '../pos/tables';
import { DAY_MS, isoTimeOrNull } from '../runtime/text';
import { WEBHOOKS_TABLE } from '../webhooks/tables';
import { disabledBecause } from '../webhooks/webhook';

const TILLS_SHOWN = 20;
const RECENT_MS = 7 * DAY_MS;

const countRecords = async (db: Db, now: number): Promise<RecordCounts> => {
  const ofStates = (...states: EventState[]) =>
    db.table(POS_EVENTS_TABLE).where({ mode: 'live' }).whereIn('state', states);
  const count = async (query: ReturnType<typeof ofStates>): Promise<number> =>
    Math.min(COUNT_LIMIT, await countUpToLimit(db, query));
  return {
    failed: await count(ofStates('failed')),
    needs_mapping: await count(ofStates('needs_mapping', 'partially_applied')),
    held: await count(ofStates('held')),
    differs: await count(ofStates('differs').where('received_at', '>=', now - RECENT_MS)),
  };
};

/** Requests that are answered 429 come again; each other one was a record that the site does not have. */
const countRefused = (db: Db, now: number): Promise<number> =>
  countUpToLimit(
    db,
    db
      .table(POS_REFUSALS_TABLE)
      .where('at', '>=', now - DAY_MS)
      .whereIn('kind', [...EVENT_KINDS])
      .whereNot('code', 'rate_limited')
  );

const readTills = async (app: App, db: Db, now: number): Promise<TroubledTill[]> => {
  const rows: ConnectionRow[] = await db
    .table(CONNECTIONS_TABLE)
    .whereNull('deleted_at')
    .whereNull('revoked_at')
    .where((troubled) => {
      troubled.whereNotNull('silent_since').orWhereNotNull('disabled_reason');
    })
    .orderBy('id');
  const zone = timeZoneOf(app);
  return rows
    .map((row): TroubledTill => {
      const minutes = row.expected_every_minutes;
      return {
        id: Number(row.id),
        name: row.name,
        silent_since: isoTimeOrNull(silentSince(row, zone, now)),
        expected_every_minutes: minutes === null ? null : Number(minutes),
        active: Boolean(row.active),
        disabled_reason: row.disabled_reason,
        disabled_because: disabledBecause(row.disabled_reason),
      };
    })
    .filter(({ active, silent_since: since }) => since !== null || !active)
    .slice(0, TILLS_SHOWN);
};

const isAny = async (query: Knex.QueryBuilder): Promise<boolean> =>
  (await query.first('id')) !== undefined;

const readSteps = async (app: App, db: Db, ctx: Context): Promise<FirstSteps> => {
  const { features, sources } = app.options;
  const contacts = sources.contact?.contentType ?? KIND_DEFINITIONS.contact.uid;
  const hasContacts = async (): Promise<boolean> =>
    (await app.strapi.db.query(contacts).findOne({ select: ['id'] })) !== null;
  const tills = () => db.table(CONNECTIONS_TABLE).whereNull('deleted_at');
  return {
    webhook: isAllowed(ctx, 'webhooks.create') ? await isAny(db.table(WEBHOOKS_TABLE)) : null,
    till: features.pos && isAllowed(ctx, 'connections.manage') ? await isAny(tills()) : null,
    contact: features.crm && isAllowed(ctx, 'crm.import') ? await hasContacts() : null,
  };
};

/** Problems other than those of webhooks, as far as the user may see them. */
export const readAttention = async (app: App, ctx: Context): Promise<Attention> => {
  const now = app.clock.now();
  const db = await app.db.current();
  const hasTills = app.options.features.pos;
  const seesTills = hasTills && isAllowed(ctx, 'connections.read');
  return {
    records: hasTills && isAllowed(ctx, 'pos-events.read') ? await countRecords(db, now) : null,
    tills: seesTills ? await readTills(app, db, now) : null,
    refused: seesTills ? await countRefused(db, now) : null,
    imports: await rejectedImports(app, now - RECENT_MS, [
      ...(isAllowed(ctx, 'crm.import') ? (['contacts'] as const) : []),
      ...(isAllowed(ctx, 'stock.import') ? (['items'] as const) : []),
    ]),
    steps: await readSteps(app, db, ctx),
  };
};
