import type { ValidateFunction } from 'ajv/dist/2020.js';

import { inOneGo, type Steps } from '../../runtime/steps';
import { describeSchemaErrors } from './messages';
import { effectiveTime, parseOccurredAt } from '../../stock/rules/occurred-at';
import { CURRENCY_CODES } from './currencies';
import type { ClosingRecord, CountLine, PosRecord, RecordLine } from './records';
import {
  VALIDATORS,
  type WireBody,
  type WireClosing,
  type WireCount,
  type WireLine,
} from './schemas/validators';
import { type EventKind, LIMITS, type RecordKind } from './states';
import { type BodyIssue, type JsonValue, strictJsonSteps } from './strict-json';

export interface ReceiptContext {
  /** When the request arrived, epoch milliseconds. */
  receivedAtMs: number;
}

export type Reading<R = PosRecord> = { ok: true; record: R } | { ok: false; issue: BodyIssue };

type RecordOf<K extends RecordKind> = Extract<PosRecord, { kind: K }>;

const refuse = (field: string, rule: string): { ok: false; issue: BodyIssue } => ({
  ok: false,
  issue: { field, message: `${field} ${rule}` },
});

const INTEGER_FIELD =
  /^(?:total|line_items\[\d+\]\.(?:quantity|unit_price)|counts\[\d+\]\.quantity|totals\[\d+\]\.(?:sales|refunds)\.(?:count|total))$/;

/** The first field that is whole only because a double rounded it; the schema cannot see that. */
const findRounded = (fields: ReadonlySet<string>): string | undefined => {
  for (const field of fields) if (INTEGER_FIELD.test(field)) return field;
  return undefined;
};

/** A field's name and its text. */
type NamedText = readonly [field: string, text: string | undefined];

/**
 * The strings that are stored as text of their own. By kind, not by looking what the body has: a
 * sale may carry a `counts` of its sender's that no schema has looked at.
 */
const bodyTexts = (body: WireBody): NamedText[] => [
  ['external_id', body.external_id],
  ['location_ref', body.location_ref],
];

const lineTexts = (lines: WireLine[] = []): NamedText[] =>
  lines.flatMap((line, index): NamedText[] => [
    [`line_items[${index}].sku`, line.sku],
    [`line_items[${index}].gtin`, line.gtin],
  ]);

const countTexts = (counts: readonly WireCount[]): NamedText[] =>
  counts.flatMap((count, index): NamedText[] => [
    [`counts[${index}].sku`, count.sku],
    [`counts[${index}].reason`, count.reason],
  ]);

/** Half of a surrogate pair is a JSON escape that is no character: it has no UTF-8 to store. */
const LONE_SURROGATE = /\p{Surrogate}/u;

const findRepeatedSku = (counts: readonly WireCount[]): string | undefined => {
  const seen = new Set<string>();
  for (const [index, { sku }] of counts.entries()) {
    if (seen.has(sku)) return `counts[${index}].sku`;
    seen.add(sku);
  }
  return undefined;
};

const lineOf = (line: WireLine): RecordLine => ({
  sku: line.sku ?? null,
  gtin: line.gtin ?? null,
  quantity: line.quantity,
  unitPrice: line.unit_price ?? null,
});

const countOf = (count: WireCount): CountLine => ({
  sku: count.sku,
  quantity: count.quantity,
  reason: count.reason ?? null,
});

type Base = Pick<
  PosRecord,
  'externalId' | 'occurredAt' | 'occurredAtMs' | 'effectiveMs' | 'clockAhead' | 'locationRef'
>;

/** What all kinds have in common past the schema. */
const readBase = (
  body: WireBody,
  texts: NamedText[],
  receivedAtMs: number
): { ok: true; base: Base } | { ok: false; issue: BodyIssue } => {
  for (const [field, text] of [...bodyTexts(body), ...texts]) {
    if (text !== undefined && LONE_SURROGATE.test(text)) {
      return refuse(field, 'must be valid Unicode (it contains half of a surrogate pair)');
    }
  }
  const time = parseOccurredAt(body.occurred_at);
  if (!time.ok) return refuse('occurred_at', time.rule);
  const base: Base = {
    externalId: body.external_id,
    occurredAt: body.occurred_at,
    occurredAtMs: time.epochMs,
    ...effectiveTime(time.epochMs, receivedAtMs),
    locationRef: body.location_ref ?? null,
  };
  return { ok: true, base };
};

const invalid = (
  kind: EventKind,
  { errors }: ValidateFunction
): { ok: false; issue: BodyIssue } => ({
  ok: false,
  issue: describeSchemaErrors(kind, errors ?? []),
});

const KNOWN_CURRENCIES: ReadonlySet<unknown> = new Set(CURRENCY_CODES);

/**
 * What a refund says of its money; a value that does not fit is left out, because no version of this
 * contract has refused one.
 */
const moneyOf = ({
  currency,
  total,
}: {
  currency?: unknown;
  total?: unknown;
}): { currency: string | null; total: number | null } => ({
  currency: KNOWN_CURRENCIES.has(currency) ? (currency as string) : null,
  total: Number.isSafeInteger(total) && (total as number) >= 0 ? (total as number) : null,
});

const READERS: {
  [K in RecordKind]: (value: JsonValue, receivedAtMs: number) => Reading<RecordOf<K>>;
} = {
  sale: (value, receivedAtMs) => {
    const validate = VALIDATORS.sale;
    if (!validate(value)) return invalid('sale', validate);
    const read = readBase(value, lineTexts(value.line_items), receivedAtMs);
    if (!read.ok) return read;
    const { currency, total, line_items: lines, customer = null, meta = null } = value;
    return {
      ok: true,
      record: {
        kind: 'sale',
        ...read.base,
        currency,
        total,
        lines: lines.map(lineOf),
        customer,
        meta,
      },
    };
  },
  refund: (value, receivedAtMs) => {
    const validate = VALIDATORS.refund;
    if (!validate(value)) return invalid('refund', validate);
    const texts: NamedText[] = [
      ['sale_external_id', value.sale_external_id],
      ['reason', value.reason],
      ...lineTexts(value.line_items),
    ];
    const read = readBase(value, texts, receivedAtMs);
    if (!read.ok) return read;
    return {
      ok: true,
      record: {
        kind: 'refund',
        ...read.base,
        saleExternalId: value.sale_external_id,
        reason: value.reason ?? null,
        restock: value.restock ?? true,
        ...moneyOf(value),
        lines: value.line_items?.map(lineOf) ?? null,
      },
    };
  },
  inventory: (value, receivedAtMs) => {
    const validate = VALIDATORS.inventory;
    if (!validate(value)) return invalid('inventory', validate);
    const read = readBase(value, countTexts(value.counts), receivedAtMs);
    if (!read.ok) return read;
    const { mode, counts } = value;
    if (mode === 'absolute') {
      const repeated = findRepeatedSku(counts);
      if (repeated) return refuse(repeated, 'must not name an item twice in an absolute count');
      if (read.base.occurredAtMs > receivedAtMs + LIMITS.countAheadMs) {
        return refuse('occurred_at', 'must not be more than 5 minutes ahead for an absolute count');
      }
    }
    return {
      ok: true,
      record: { kind: 'inventory', ...read.base, mode, counts: counts.map(countOf) },
    };
  },
};

/** `readRecord`, step by step. @param nodes  values that it may have */
export function* recordSteps<K extends RecordKind>(
  kind: K,
  body: Uint8Array,
  { receivedAtMs }: ReceiptContext,
  nodes: number
): Steps<Reading<RecordOf<K>>> {
  const json = yield* strictJsonSteps(body, LIMITS.depth, nodes);
  if (!json.ok) return json;
  const reading = READERS[kind](json.value, receivedAtMs);
  const rounded = reading.ok ? findRounded(json.roundedToInteger) : undefined;
  return rounded ? refuse(rounded, 'must be a whole number, not a fraction') : reading;
}

/**
 * Reads a body's raw bytes as a record: strict JSON, then the published schema, then the rules no
 * schema can state (a real calendar day, valid Unicode in ids, an item once in a count, a count at
 * most 5 minutes ahead). A refusal is a 400 `schema_invalid` whose `message` names field and rule.
 * Never throws. docs/contract-pos.md#answers.
 */
export const readRecord = <K extends RecordKind>(
  kind: K,
  body: Uint8Array,
  receipt: ReceiptContext
): Reading<RecordOf<K>> => inOneGo(recordSteps(kind, body, receipt, Infinity));

/**
 * The rule that depends on the connection: a sale or an inventory message must say where, if the
 * connection maps more than one location. Apart from `readRecord`, so that a retry of an accepted
 * record can be recognised before it: a change of the mapping must not turn a duplicate into a 400.
 *
 * @returns null if the record may pass
 */
export const checkLocationRef = (record: PosRecord, mappedLocations: number): BodyIssue | null => {
  if (record.kind === 'refund' || mappedLocations < 2 || record.locationRef !== null) return null;
  return refuse('location_ref', 'is required, because this connection maps several locations')
    .issue;
};

const closingTexts = ({ external_ids: ids = [] }: WireClosing): NamedText[] =>
  ids.map((id, index): NamedText => [`external_ids[${index}]`, id]);

const findRepeatedCurrency = ({ totals }: WireClosing): string | undefined => {
  const at = totals.findIndex(
    ({ currency }, index) => totals.findIndex((one) => one.currency === currency) !== index
  );
  return at < 0 ? undefined : `totals[${at}].currency`;
};

const closingOf = (value: JsonValue, receivedAtMs: number): Reading<ClosingRecord> => {
  const validate = VALIDATORS.closing;
  if (!validate(value)) return invalid('closing', validate);
  const read = readBase(value, closingTexts(value), receivedAtMs);
  if (!read.ok) return read;
  const from = parseOccurredAt(value.from);
  if (!from.ok) return refuse('from', from.rule);
  const to = parseOccurredAt(value.to);
  if (!to.ok) return refuse('to', to.rule);
  if (to.epochMs <= from.epochMs) return refuse('to', 'must be later than from');
  if (to.epochMs - from.epochMs > LIMITS.closingMs) {
    return refuse('to', 'must be at most 31 days and an hour later than from');
  }
  const repeated = findRepeatedCurrency(value);
  if (repeated) return refuse(repeated, 'must not name a currency twice');
  const { totals, external_ids: ids } = value;
  return {
    ok: true,
    record: {
      kind: 'closing',
      ...read.base,
      fromMs: from.epochMs,
      toMs: to.epochMs,
      totals: totals.map(({ currency, sales, refunds }) => ({
        currency,
        sales: { count: sales.count, total: sales.total },
        refunds: { count: refunds.count, total: refunds.total },
      })),
      externalIds: ids === undefined ? null : [...new Set(ids)],
    },
  };
};

/** `readClosing`, step by step. @param nodes  values that it may have */
export function* closingSteps(
  body: Uint8Array,
  { receivedAtMs }: ReceiptContext,
  nodes: number
): Steps<Reading<ClosingRecord>> {
  const json = yield* strictJsonSteps(body, LIMITS.depth, nodes);
  if (!json.ok) return json;
  const reading = closingOf(json.value, receivedAtMs);
  const rounded = reading.ok ? findRounded(json.roundedToInteger) : undefined;
  return rounded ? refuse(rounded, 'must be a whole number, not a fraction') : reading;
}

/** Reads a body as a closing, as `readRecord` reads the kinds that are queued. Never throws. */
export const readClosing = (body: Uint8Array, receipt: ReceiptContext): Reading<ClosingRecord> =>
  inOneGo(closingSteps(body, receipt, Infinity));
