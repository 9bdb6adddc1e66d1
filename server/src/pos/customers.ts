import type { Core } from '@strapi/strapi';
import type { SaleCustomer } from '../../../shared/contracts/customers';
import { minorDigits } from '../../../shared/currencies';
import { getOptions } from '../config';
import { currentExecutor, type Executor, inTransaction, table } from '../database/connection';
import { readLatest } from '../database/latest';
import { createFaultLog } from '../database/errors/fault-log';
import { isInfrastructureFault } from '../database/errors/faults';
import { withTransientRetry } from '../database/retry';
import { errorText } from '../runtime/text';
import { nextTurn } from '../runtime/event-loop';
import { readCounted } from './money/rollups';
import { getRecordStore } from './processing/record-store';
import { readRecord } from './rules/validate';
import {
  type ConnectionRow,
  CONNECTIONS_TABLE,
  type PosEventRow,
  POS_EVENTS_TABLE,
} from './tables';
import { customersOf } from './customers/note-purchases';
import { PURCHASES_TABLE, type PurchaseRow } from './customers/purchases-table';

const AT_ONCE = 50;
/** After so long a sale is tried again that could not be attached; the last one again and again. */
const RETRY_MS = [5_000, 60_000, 600_000, 3_600_000];

const purchases = (strapi: Core.Strapi, executor: Executor) =>
  table(strapi, executor, PURCHASES_TABLE);

type DueRow = Pick<PurchaseRow, 'event_id' | 'due_at' | 'tries'>;
type SaleRow = Pick<PosEventRow, 'id' | 'connection_id' | 'family_digest' | 'body' | 'received_at'>;

const readSale = async (strapi: Core.Strapi, id: number): Promise<SaleRow | undefined> =>
  (await table(strapi, await currentExecutor(strapi), POS_EVENTS_TABLE)
    .select('id', 'connection_id', 'family_digest', 'body', 'received_at')
    .where({ id })
    .first()) as SaleRow | undefined;

const readConnection = async (
  strapi: Core.Strapi,
  { connection_id: id }: SaleRow
): Promise<ConnectionRow | undefined> =>
  (await table(strapi, await currentExecutor(strapi), CONNECTIONS_TABLE)
    .where({ id })
    .first()) as ConnectionRow | undefined;

const customerOf = ({ body, received_at: at }: SaleRow): SaleCustomer | null => {
  const reading = readRecord('sale', Buffer.from(body, 'utf8'), { receivedAtMs: Number(at) });
  if (!reading.ok || reading.record.customer === null) return null;
  const { customer } = reading.record;
  const fields = (['email', 'phone', 'first_name', 'last_name'] as const).flatMap((key) => {
    const value = Object.hasOwn(customer, key) ? customer[key] : undefined;
    return typeof value === 'string' ? [[key, value] as const] : [];
  });
  return Object.fromEntries(fields);
};

/** The contact of a sale; null where nobody is meant for sure, or its connection looks for nobody. */
const contactOf = async (
  strapi: Core.Strapi,
  sale: SaleRow,
  connection: ConnectionRow | undefined
): Promise<string | null> => {
  const rule = connection?.customers ?? 'match';
  const customer = customerOf(sale);
  if (!customer || rule === 'ignore') return null;
  const country = connection?.country ?? getOptions(strapi).pos.country;
  const attached = customersOf(strapi)?.attach(customer, { create: rule === 'create', country });
  return (await attached) ?? null;
};

interface Money {
  currency: string;
  /** Of the sale, less its refunds. */
  net: bigint;
  refunds: number[];
}

/** What a sale and its refunds come to now. */
const moneyOf = async (
  strapi: Core.Strapi,
  trx: Executor,
  { id, family_digest: digest }: SaleRow
): Promise<Money | null> => {
  const rows = (await table(strapi, trx, POS_EVENTS_TABLE)
    .select('id', 'kind', 'counted')
    .where({ family_digest: digest })
    .whereNotNull('counted')
    .orderBy('id')) as Pick<PosEventRow, 'id' | 'kind' | 'counted'>[];
  const base = { connection: 0, at: 0 };
  let own: { currency: string; amount: bigint } | null = null;
  let back = 0n;
  const refunds: number[] = [];
  for (const { id: event, kind, counted } of rows) {
    if (counted === null) continue;
    const one = readCounted(counted, { ...base, kind: kind === 'sale' ? 'sale' : 'refund' });
    if (Number(event) === Number(id)) own = one;
    else if (one.sale === Number(id)) {
      back += one.amount;
      refunds.push(Number(event));
    }
  }
  return own && { currency: own.currency, net: own.amount - back, refunds };
};

/** Refunds are listed beside their sale. */
const listRefunds = async (
  strapi: Core.Strapi,
  trx: Executor,
  saleId: number,
  contact: string,
  refunds: readonly number[]
): Promise<void> => {
  const listed = (await purchases(strapi, trx)
    .select('event_id')
    .where({ sale_id: saleId })
    .whereNot({ event_id: saleId })) as { event_id: number }[];
  const known = new Set(listed.map(({ event_id: id }) => Number(id)));
  const wanted = new Set(refunds);
  const gone = [...known].filter((id) => !wanted.has(id));
  if (gone.length > 0) await purchases(strapi, trx).whereIn('event_id', gone).delete();
  for (const event of refunds.filter((id) => !known.has(id))) {
    // A refund that was another sale's before is this one's now.
    await purchases(strapi, trx).where({ event_id: event }).delete();
    await purchases(strapi, trx).insert({
      event_id: event,
      sale_id: saleId,
      contact_id: contact,
    });
  }
};

/** The currency that a contact's lifetime value is in: that of the first sale that it has of it. */
const currencyOf = async (
  strapi: Core.Strapi,
  trx: Executor,
  contact: string,
  otherwise: string
): Promise<string> => {
  const [first] = (await readLatest(
    strapi,
    purchases(strapi, trx)
      .select('currency')
      .where({ contact_id: contact })
      .whereNotNull('applied')
      .orderBy('id')
      .limit(1)
  )) as Pick<PurchaseRow, 'currency'>[];
  return first?.currency ?? otherwise;
};

/** What a contact's lifetime value has of its purchases. */
const sumOf = async (
  strapi: Core.Strapi,
  trx: Executor,
  contact: string,
  currency: string
): Promise<bigint> => {
  const rows = (await readLatest(
    strapi,
    purchases(strapi, trx)
      .select('applied')
      .where({ contact_id: contact, currency })
      .whereNotNull('applied')
  )) as Pick<PurchaseRow, 'applied'>[];
  return rows.reduce((sum, { applied }) => sum + BigInt(applied ?? '0'), 0n);
};

const attachOne = async (strapi: Core.Strapi, eventId: number): Promise<void> => {
  const sale = await readSale(strapi, eventId);
  // Not in the transaction: whoever processes records holds it, and may wait for the purchase.
  const connection = sale && (await readConnection(strapi, sale));
  await inTransaction(strapi, async ({ trx }) => {
    // First of all: MySQL goes on reading what was there when the transaction first read.
    const row = (await purchases(strapi, trx).where({ event_id: eventId }).forUpdate().first()) as
      PurchaseRow | undefined;
    if (!row || row.due_at === null) return;
    const done = (columns: Partial<PurchaseRow> = {}) =>
      purchases(strapi, trx)
        .where({ id: row.id })
        .update({ due_at: null, tries: 0, error: null, ...columns });
    if (!sale) {
      await done();
      return;
    }
    const contact = row.contact_id ?? (await contactOf(strapi, sale, connection));
    const money = contact === null ? null : await moneyOf(strapi, trx, sale);
    if (contact === null || !money) {
      await done({ contact_id: contact });
      return;
    }
    const { currency, net, refunds } = money;
    // Whoever attaches another sale of the contact has committed, or waits here.
    await customersOf(strapi)?.lockValue(contact);
    // What counts once goes on counting: its refunds come off the value that has it.
    const counts =
      row.applied !== null || (await currencyOf(strapi, trx, contact, currency)) === currency;
    if (counts) {
      await customersOf(strapi)?.followPurchases(contact, {
        change: net - BigInt(row.applied ?? '0'),
        digits: minorDigits(currency),
        before: () => sumOf(strapi, trx, contact, currency),
      });
    }
    await listRefunds(strapi, trx, eventId, contact, refunds);
    await done({ contact_id: contact, currency, applied: counts ? String(net) : null });
  });
};

/** Has one that could not be attached wait, and says why; not over what was noted meanwhile. */
const putBack = async (
  strapi: Core.Strapi,
  { event_id: eventId, due_at: seen, tries: before }: DueRow,
  error: unknown
): Promise<void> => {
  const tries = Number(before ?? 0);
  const delay = RETRY_MS[Math.min(tries, RETRY_MS.length - 1)] ?? 0;
  const said = errorText(error);
  // Once it is tried by the hour, the list of records says it.
  if (tries < RETRY_MS.length) {
    strapi.log.error(
      `switchboard: the customer of the POS event ${eventId} was not attached: ${said}`
    );
  }
  await purchases(strapi, await currentExecutor(strapi))
    .where({ event_id: eventId, due_at: seen })
    .update({ due_at: getRecordStore(strapi).now() + delay, tries: tries + 1, error: said });
};

/** One whose own fault it is must not stop the others, whatever it failed for. */
const attachSafely = async (strapi: Core.Strapi, row: DueRow): Promise<void> => {
  try {
    await withTransientRetry(() => attachOne(strapi, Number(row.event_id)));
  } catch (error) {
    if (isInfrastructureFault(error)) throw error;
    await putBack(strapi, row, error);
  }
};

interface Attaching {
  stopped: boolean;
  again: boolean;
  running: Promise<void> | null;
  logFault: (what: string, error: unknown) => void;
}

const attachings = new WeakMap<Core.Strapi, Attaching>();

const attachAll = async (strapi: Core.Strapi, attaching: Attaching): Promise<void> => {
  do {
    attaching.again = false;
    const due = (await purchases(strapi, await currentExecutor(strapi))
      .select('event_id', 'due_at', 'tries')
      .where('due_at', '<=', getRecordStore(strapi).now())
      .orderBy('due_at')
      .limit(AT_ONCE)) as DueRow[];
    for (const row of due) {
      if (attaching.stopped) return;
      await attachSafely(strapi, row);
      await nextTurn();
    }
    if (due.length > 0) attaching.again = true;
  } while (attaching.again && !attaching.stopped);
};

/** Looks for customers of sales now; for the moment after a commit, and by the clock. Never throws. */
export const wakeAttaching = (strapi: Core.Strapi): void => {
  const attaching = attachings.get(strapi);
  if (!attaching || attaching.stopped || !customersOf(strapi)) return;
  attaching.again = true;
  if (attaching.running) return;
  attaching.running = getRecordStore(strapi)
    .detached(() => attachAll(strapi, attaching))
    .catch((error: unknown) => {
      attaching.logFault('switchboard: customers of sales were not attached', error);
    })
    .finally(() => {
      attaching.running = null;
    });
};

export const startAttaching = (strapi: Core.Strapi): void => {
  attachings.set(strapi, {
    stopped: false,
    again: false,
    running: null,
    logFault: createFaultLog(strapi.log),
  });
  wakeAttaching(strapi);
};

/** Lets the one under way commit. */
export const stopAttaching = async (strapi: Core.Strapi): Promise<void> => {
  const attaching = attachings.get(strapi);
  if (!attaching) return;
  attaching.stopped = true;
  await attaching.running;
};

/** Has the customer of a sale looked for now that could not be attached. Call it in a transaction. */
export const retryAttaching = async (
  strapi: Core.Strapi,
  trx: Executor,
  eventId: number
): Promise<void> => {
  await purchases(strapi, trx)
    .where({ event_id: eventId })
    .whereNotNull('error')
    .update({ due_at: getRecordStore(strapi).now(), tries: 0 });
};

/** Why customers of sales could not be attached, by event. */
export const customerErrors = async (
  strapi: Core.Strapi,
  executor: Executor,
  ids: readonly number[]
): Promise<Map<number, string>> => {
  if (ids.length === 0) return new Map();
  const rows = (await purchases(strapi, executor)
    .select('event_id', 'error')
    .whereIn('event_id', [...ids])
    .whereNotNull('error')) as Pick<PurchaseRow, 'event_id' | 'error'>[];
  return new Map(rows.map(({ event_id: id, error }) => [Number(id), error ?? '']));
};

/** The sales whose customer could not be attached. */
export const unattachedSales = (strapi: Core.Strapi, executor: Executor) =>
  purchases(strapi, executor).select('event_id').whereNotNull('error');
