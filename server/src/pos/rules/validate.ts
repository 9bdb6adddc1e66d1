import type { ErrorObject } from 'ajv';
import type { ValidateFunction } from 'ajv/dist/2020.js';
import { inOneGo, type Steps } from '../../runtime/event-loop';
import { effectiveTime, OCCURRED_AT_PATTERN, parseOccurredAt } from '../../stock/rules/occurred-at';
import type { ClosingRecord, CountLine, PosRecord, RecordLine } from './records';
import {
  CURRENCY_CODES,
  excludedKinds,
  REQUIRED_FIELDS,
  tellingFields,
  VALIDATORS,
  type WireBody,
  type WireClosing,
  type WireCount,
  type WireLine,
} from './schemas';
import { type EventKind, LIMITS, type RecordKind } from './states';
import {
  type BodyIssue,
  formatPath,
  type JsonPath,
  type JsonValue,
  strictJsonSteps,
} from './strict-json';

const ARRAY_INDEX = /^\d+$/;

/** `/line_items/0/sku` as steps. No schema of ours has an object whose keys are numbers. */
const pathOf = (instancePath: string): JsonPath =>
  instancePath
    .split('/')
    .slice(1)
    .map((step) =>
      ARRAY_INDEX.test(step) ? Number(step) : step.replaceAll('~1', '/').replaceAll('~0', '~')
    );

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: 'a string',
  integer: 'a whole number without quotes',
  boolean: 'true or false',
  object: 'a JSON object',
  array: 'a list',
};

const kindOf = (value: unknown): string => {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'number') return Number.isInteger(value) ? 'a number' : 'a fraction';
  return typeof value === 'boolean' ? `${value}` : `a ${typeof value}`;
};

const enumRule = (field: string, allowed: readonly string[]): string =>
  field === 'currency' || field.endsWith('.currency')
    ? 'must be an ISO 4217 currency code in upper case, such as GBP'
    : `must be one of: ${allowed.join(', ')}`;

const patternRule = (pattern: unknown): string =>
  pattern === OCCURRED_AT_PATTERN
    ? 'must be an ISO 8601 date and time with an explicit offset, such as 2025-03-01T14:05:00+01:00'
    : 'must not contain control characters';

const minimumRule = (field: string, error: ErrorObject): string => {
  const { limit } = error.params as { limit: number };
  if (limit === 1) return 'must be a positive whole number (what comes back is sent as a refund)';
  if (limit === 0 && field.startsWith('counts[')) {
    return 'must not be negative in absolute mode (use relative for an adjustment)';
  }
  return `must be at least ${limit}`;
};

const countRule = (limit: number, few: boolean): string => {
  if (few) return limit === 1 ? 'must not be empty' : `must have at least ${limit} entries`;
  return `must have at most ${limit} entries`;
};

const ruleOf = (field: string, error: ErrorObject): string => {
  const params = error.params as { limit: number; type: string; allowedValues: readonly string[] };
  switch (error.keyword) {
    case 'type':
      return `must be ${TYPE_WORDS[params.type] ?? params.type}, not ${kindOf(error.data)}`;
    case 'anyOf':
      return 'must have a sku or a gtin';
    case 'minimum':
      return minimumRule(field, error);
    case 'maximum':
      return `must be at most ${params.limit}`;
    case 'minLength':
      return 'must not be empty';
    case 'maxLength':
      return `must have at most ${params.limit} characters`;
    case 'minItems':
      return countRule(params.limit, true);
    case 'maxItems':
      return countRule(params.limit, false);
    case 'pattern':
      return patternRule(error.schema);
    case 'enum':
      return enumRule(field, params.allowedValues);
    default:
      return error.message ?? 'is not valid';
  }
};

const A_KIND = {
  sale: 'a sale',
  refund: 'a refund',
  inventory: 'an inventory message',
  closing: 'a closing',
} as const satisfies Record<EventKind, string>;

/** A body that has all that another kind needs; the field is one that tells the two apart. */
const describeOtherKind = (kind: EventKind, { schema }: ErrorObject): BodyIssue | null => {
  const { required } = (schema ?? {}) as { required?: unknown };
  const other = excludedKinds(kind).find((one) => REQUIRED_FIELDS[one] === required);
  const fields = other && tellingFields(kind, other);
  if (!other || !fields?.[0]) return null;
  const rule = `must not be in ${A_KIND[kind]}`;
  const because = `the body has every required field of ${A_KIND[other]}, which is sent to /${other}`;
  return { field: fields[0], message: `${fields.join(' and ')} ${rule}: ${because}` };
};

/**
 * Says in plain words which field breaks which rule. Takes what the validator reported, with
 * `verbose` on. Values of the sender are never repeated: they may be long, or personal.
 */
const describeSchemaErrors = (kind: EventKind, errors: readonly ErrorObject[]): BodyIssue => {
  // A failed `anyOf` reports its branches first, and itself, which says it best, last.
  const error = errors.find(({ keyword }) => keyword === 'anyOf') ?? errors[0];
  if (!error) return { field: 'body', message: 'body is not valid' };
  const otherKind = error.keyword === 'not' ? describeOtherKind(kind, error) : null;
  if (otherKind) return otherKind;
  const path = pathOf(error.instancePath);
  if (error.keyword === 'required') {
    const { missingProperty } = error.params as { missingProperty: string };
    const field = formatPath([...path, missingProperty]);
    return { field, message: `${field} is required` };
  }
  const field = formatPath(path);
  return { field, message: `${field} ${ruleOf(field, error)}` };
};

interface ReceiptContext {
  /** When the request arrived, epoch milliseconds. */
  receivedAtMs: number;
}

type Reading<R = PosRecord> = { ok: true; record: R } | { ok: false; issue: BodyIssue };

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
