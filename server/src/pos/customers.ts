import type { Core } from '@strapi/strapi';
import type {
  CustomersService,
  PurchasesService,
  SaleCustomer,
} from '../../../shared/contracts/customers';
import type { CustomerRule } from '../../../shared/contracts/pos';
import { minorDigits } from '../../../shared/currencies';
import { findInChunks, inChunks } from '../database/written-rows';
import type { PlainTable, RowOf } from '../database/tables/plain-tables';
import { readList } from '../http/pagination';
import { errorText } from '../runtime/text';
import { DueRows } from './due-rows';
import { readCounted } from './sales-figures';
import { type ProcessingContext, readStored } from './processing/resolve';
import {
  type ConnectionRow,
  CONNECTIONS_TABLE,
  POS_EVENTS_TABLE,
  type PosEventRow,
} from './tables';
import { type App, appOf } from '../app';
import type { Db, Tx } from '../database/db';

export const PURCHASES_TABLE = 'switchboard_pos_purchases';

/**
 * Live sales that name a customer, and refunds of sales with a contact. `contact_id` is null if none was looked up or
 * found. `applied` is the sale's share of the contact's lifetime value, less refunds, in minor units of `currency`;
 * null: none, any earlier share had another currency. `due_at` (epoch milliseconds) is null if nothing has changed.
 * `tries` counts consecutive failures to attach it, and `error` says why.
 */
export const purchasesTable = {
  tableName: PURCHASES_TABLE,
  attributes: {
    event_id: { type: 'integer' },
    sale_id: { type: 'integer' },
    contact_id: { type: 'string', null: true },
    currency: { type: 'string', column: { args: [3] }, null: true },
    applied: { type: 'text', null: true },
    due_at: { type: 'biginteger', null: true },
    tries: { type: 'integer', null: true },
    error: { type: 'text', null: true },
  },
  indexes: [
    { name: 'sb_purchase_event', columns: ['event_id'], type: 'unique' },
    { name: 'sb_purchase_sale', columns: ['sale_id'] },
    { name: 'sb_purchase_contact', columns: ['contact_id', 'event_id'] },
    { name: 'sb_purchase_due', columns: ['due_at'] },
  ],
} satisfies PlainTable;

export type PurchaseRow = RowOf<typeof purchasesTable>;

/** A site without the CRM has no such service. */
const customersOf = (app: App): CustomersService | undefined =>
  app.strapi.service('plugin::switchboard.customers') as unknown as CustomersService | undefined;

/**
 * Notes in the processing transaction which sales to attach to a contact, and which attached sums changed.
 * @param named sales that name a customer
 * @param repriced sales whose refunds have another cost now
 */
export const notePurchases = async (
  tx: Tx,
  app: App,
  named: readonly ProcessingContext[],
  repriced: readonly number[]
): Promise<void> => {
  if (!customersOf(app)) return;
  const dueAt = app.clock.now();
  const fresh = named.filter(
    ({ row, connection }) =>
      row.mode === 'live' &&
      row.processed_at === null &&
      (connection.customers ?? 'match') !== 'ignore'
  );
  const rows = fresh.map(({ id }) => ({ event_id: id, sale_id: id, due_at: dueAt, tries: 0 }));
  await tx.insert(PURCHASES_TABLE, rows);
  let woken = 0;
  for (const some of inChunks(repriced)) {
    woken += await purchases(tx).whereIn('event_id', some).update({ due_at: dueAt, tries: 0 });
  }
  if (rows.length > 0 || woken > 0) tx.onCommit(() => attaching(app).wake());
};

/** After so long a sale is tried again that could not be attached; the last one again and again. */
const RETRY_MS = [5_000, 60_000, 600_000, 3_600_000];

const purchases = (db: Db) => db.table(PURCHASES_TABLE);

type DueRow = Pick<PurchaseRow, 'event_id' | 'due_at' | 'tries' | 'error'>;
type SaleRow = Pick<PosEventRow, 'id' | 'connection_id' | 'family_digest' | 'body' | 'received_at'>;

const customerOf = (sale: SaleRow): SaleCustomer | null => {
  const reading = readStored('sale', sale);
  const customer = reading.ok ? reading.value.customer : null;
  if (customer === null) return null;
  const fields = (['email', 'phone', 'first_name', 'last_name'] as const).flatMap((key) => {
    const value = Object.hasOwn(customer, key) ? customer[key] : undefined;
    return typeof value === 'string' ? [[key, value] as const] : [];
  });
  return Object.fromEntries(fields);
};

/** The contact of a sale; null if nobody is meant for sure, or its connection looks for nobody. */
const contactOf = async (app: App, sale: SaleRow, connection: ConnectionRow | undefined) => {
  const rule = connection?.customers ?? 'match';
  const customer = customerOf(sale);
  if (!customer || rule === 'ignore') return null;
  const country = connection?.country ?? app.options.pos.country;
  const attached = customersOf(app)?.attach(customer, { create: rule === 'create', country });
  return (await attached) ?? null;
};

const moneyOf = async (tx: Tx, { id, family_digest: digest }: SaleRow) => {
  const rows = (await tx
    .table(POS_EVENTS_TABLE)
    .select('id', 'counted')
    .where({ family_digest: digest })
    .whereNotNull('counted')
    .orderBy('id')) as { id: number; counted: string }[];
  let own: { currency: string; amount: bigint } | null = null;
  let back = 0n;
  const refunds: number[] = [];
  for (const { id: event, counted } of rows) {
    const one = readCounted(counted);
    if (Number(event) === Number(id)) own = one;
    else if (one.sale === Number(id)) {
      back += one.amount;
      refunds.push(Number(event));
    }
  }
  return own && { currency: own.currency, net: own.amount - back, refunds };
};

const listRefunds = async (tx: Tx, saleId: number, contact: string, refunds: readonly number[]) => {
  const listed: number[] = await purchases(tx)
    .where({ sale_id: saleId })
    .whereNot({ event_id: saleId })
    .pluck('event_id');
  const known = new Set(listed.map(Number));
  const wanted = new Set(refunds);
  const gone = [...known].filter((id) => !wanted.has(id));
  if (gone.length > 0) await purchases(tx).whereIn('event_id', gone).delete();
  for (const event of refunds.filter((id) => !known.has(id))) {
    // A refund that was another sale's before is this one's now.
    await purchases(tx).where({ event_id: event }).delete();
    await purchases(tx).insert({ event_id: event, sale_id: saleId, contact_id: contact });
  }
};

/** The currency that a contact's lifetime value is in: that of the first sale that it has of it. */
const currencyOf = async (tx: Db, contact: string, otherwise: string): Promise<string> => {
  const [first] = (await tx.latest(
    purchases(tx)
      .select('currency')
      .where({ contact_id: contact })
      .whereNotNull('applied')
      .orderBy('id')
      .limit(1)
  )) as Pick<PurchaseRow, 'currency'>[];
  return first?.currency ?? otherwise;
};

const sumOf = async (tx: Tx, contact: string, currency: string): Promise<bigint> => {
  const rows = (await tx.latest(
    purchases(tx).select('applied').where({ contact_id: contact, currency }).whereNotNull('applied')
  )) as Pick<PurchaseRow, 'applied'>[];
  return rows.reduce((sum, { applied }) => sum + BigInt(applied ?? '0'), 0n);
};

const attachOne = async (app: App, eventId: number): Promise<void> => {
  const db = await app.db.current();
  const sale: SaleRow | undefined = await db
    .table(POS_EVENTS_TABLE)
    .where({ id: eventId })
    .first('id', 'connection_id', 'family_digest', 'body', 'received_at');
  // Not in the transaction: record processing holds it, and may wait for the purchase.
  const connection: ConnectionRow | undefined =
    sale && (await db.table(CONNECTIONS_TABLE).where({ id: sale.connection_id }).first());
  await app.db.retrying(async (tx) => {
    // First of all: MySQL goes on reading what was there when the transaction first read.
    const row = (await purchases(tx).where({ event_id: eventId }).forUpdate().first()) as
      PurchaseRow | undefined;
    if (!row || row.due_at === null) return;
    const done = async (columns: Partial<PurchaseRow> = {}): Promise<void> => {
      const changes = { due_at: null, tries: 0, error: null, ...columns };
      await purchases(tx).where({ id: row.id }).update(changes);
    };
    if (!sale) return done();
    const contact = row.contact_id ?? (await contactOf(app, sale, connection));
    const money = contact === null ? null : await moneyOf(tx, sale);
    if (contact === null || !money) return done({ contact_id: contact });
    const { currency, net, refunds } = money;
    // A transaction that attaches another sale of the contact has committed, or waits here.
    const isThere = await customersOf(app)?.lockValue(contact);
    // It was merged or deleted since it was found: look again.
    if (isThere === false && row.contact_id === null) throw new Error('the contact is gone');
    // A sale that counts once goes on counting: its refunds come off the value that has it.
    const counts = row.applied !== null || (await currencyOf(tx, contact, currency)) === currency;
    if (counts) {
      await customersOf(app)?.followPurchases(contact, {
        change: net - BigInt(row.applied ?? '0'),
        digits: minorDigits(currency),
        before: () => sumOf(tx, contact, currency),
      });
    }
    await listRefunds(tx, eventId, contact, refunds);
    await done({ contact_id: contact, currency, applied: counts ? String(net) : null });
  });
};

const createAttaching = (app: App): DueRows<DueRow> =>
  new DueRows<DueRow>(app, {
    tableName: PURCHASES_TABLE,
    columns: ['tries'],
    work: ({ event_id: id }) => attachOne(app, Number(id)),
    failed({ event_id: id, tries: before }, error) {
      const tries = Number(before ?? 0);
      const said = errorText(error);
      // Once it is tried by the hour, the list of records says it.
      if (tries < RETRY_MS.length) {
        app.log.error(`switchboard: the customer of the POS event ${id} was not attached: ${said}`);
      }
      const delay = RETRY_MS[Math.min(tries, RETRY_MS.length - 1)] ?? 0;
      return { due_at: app.clock.now() + delay, tries: tries + 1, error: said };
    },
    longestRestMs: 0,
    fault: 'customers of sales were not attached',
  });

/** Looks for the customers of sales that are due. */
export const attaching = (app: App): DueRows<DueRow> => app.part(createAttaching);

/** On a site without the CRM there is nobody to look for. */
export const startAttaching = (app: App): void => {
  if (customersOf(app)) attaching(app).start();
};

/** Looks again for the customer of a sale that could not be attached. Call it in a transaction. */
export const retryAttaching = async (tx: Tx, app: App, eventId: number): Promise<void> => {
  await purchases(tx)
    .where({ event_id: eventId })
    .whereNotNull('error')
    .update({ due_at: app.clock.now(), tries: 0 });
};

/** Why customers of sales could not be attached, by event. */
export const customerErrors = async (db: Db, ids: readonly number[]) => {
  const rows = await findInChunks<Pick<PurchaseRow, 'event_id' | 'error'>>(ids, (some) =>
    purchases(db).select('event_id', 'error').whereIn('event_id', some).whereNotNull('error')
  );
  return new Map(rows.map(({ event_id: id, error }) => [Number(id), error ?? '']));
};

export const unattachedSales = (db: Db) => purchases(db).select('event_id').whereNotNull('error');

type Row = Pick<PosEventRow, 'external_id' | 'occurred_at' | 'counted'> & {
  kind: 'sale' | 'refund';
};

/** The service `pos-purchases`, which the CRM uses if the site has both. */
export const createPurchasesService = ({ strapi }: { strapi: Core.Strapi }): PurchasesService => ({
  async list(contact, page) {
    const db = await appOf(strapi).db.current();
    const query = db
      .table(`${PURCHASES_TABLE} as p`)
      .join(`${POS_EVENTS_TABLE} as e`, 'e.id', 'p.event_id')
      .select('e.kind', 'e.external_id', 'e.occurred_at', 'e.counted')
      .where('p.contact_id', contact)
      .orderBy('e.effective_at', 'desc')
      .orderBy('e.id', 'desc');
    return readList(db, query, page, ({ kind, external_id, occurred_at, counted }: Row) => {
      const { currency = null, amount = 0n } = counted === null ? {} : readCounted(counted);
      return { kind, external_id, occurred_at, currency, total: Number(amount) };
    });
  },

  async move(from, to) {
    const db = await appOf(strapi).db.current();
    const currency = await currencyOf(db, to, '');
    const isOne = currency === '' || currency === (await currencyOf(db, from, currency));
    const moved = { contact_id: to, ...(!isOne && { applied: null }) };
    await purchases(db).where({ contact_id: from }).update(moved);
    return isOne;
  },

  async areAttached() {
    const db = await appOf(strapi).db.current();
    const attaching = db
      .table(CONNECTIONS_TABLE)
      .whereNull('customers')
      .orWhereNot({ customers: 'ignore' satisfies CustomerRule });
    return (await attaching.first('id')) !== undefined;
  },
});
