import type { ErrorObject } from 'ajv';
import type { ValidateFunction } from 'ajv/dist/2020.js';
import { inOneGo, type Steps } from '../../runtime/event-loop';
import { effectiveTime, OCCURRED_AT_PATTERN, parseOccurredAt } from '../../stock/rules/occurred-at';
import {
  type ClosingRecord,
  type EventKind,
  LIMITS,
  type PosRecord,
  type RecordBase,
  type RecordLine,
} from './records';
import {
  CURRENCY_CODES,
  excludedKinds,
  REQUIRED_FIELDS,
  tellingFields,
  VALIDATORS,
  type WireBodies,
  type WireLine,
} from './schemas';
import {
  type BodyIssue,
  firstRepeated,
  formatPath,
  type JsonPath,
  type JsonValue,
  type Read,
  refuse,
  type Refused,
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

/** Which of them there are depends on the keyword. */
type Params = { limit: number; type: string; allowedValues?: readonly string[] };

const minimumRule = (field: string, limit: number): string => {
  if (limit === 1) return 'must be a positive whole number (what comes back is sent as a refund)';
  if (limit === 0 && field.startsWith('counts[')) {
    return 'must not be negative in absolute mode (use relative for an adjustment)';
  }
  return `must be at least ${limit}`;
};

const ruleOf = (field: string, { keyword, params, data, schema, message }: ErrorObject): string => {
  const { limit, type, allowedValues } = params as Params;
  const rules: Readonly<Record<string, string>> = {
    type: `must be ${TYPE_WORDS[type] ?? type}, not ${kindOf(data)}`,
    anyOf: 'must have a sku or a gtin',
    minimum: minimumRule(field, limit),
    maximum: `must be at most ${limit}`,
    minLength: 'must not be empty',
    minItems: 'must not be empty',
    maxLength: `must have at most ${limit} characters`,
    maxItems: `must have at most ${limit} entries`,
    pattern: patternRule(schema),
    enum: enumRule(field, allowedValues ?? []),
  };
  return rules[keyword] ?? message ?? 'is not valid';
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

/** Says which field breaks which rule. Values of the sender are never repeated: they may be personal. */
const describeSchemaErrors = (kind: EventKind, errors: readonly ErrorObject[]): BodyIssue => {
  // A failed `anyOf` reports its branches first and itself last, which is the best message.
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

export type RecordOf<K extends EventKind> = Extract<PosRecord | ClosingRecord, { kind: K }>;

type NamedText = readonly [field: string, text: string | undefined];

/** The rules of a kind, which are its own: a sale may carry a `counts` of its sender's. */
interface KindRules<K extends EventKind> {
  /** The kind's own strings that are stored as text, in addition to those of all kinds. */
  texts(body: WireBodies[K]): NamedText[];
  /** Checks beyond the schema, and the record's fields in addition to the base. */
  read(
    body: WireBodies[K],
    base: RecordBase,
    receivedAtMs: number
  ): Omit<RecordOf<K>, keyof RecordBase | 'kind'> | Refused;
}

const INTEGER_FIELD =
  /^(?:total|line_items\[\d+\]\.(?:quantity|unit_price)|counts\[\d+\]\.quantity|totals\[\d+\]\.(?:sales|refunds)\.(?:count|total))$/;

/** Half of a surrogate pair is a JSON escape that is no character: it has no UTF-8 to store. */
const LONE_SURROGATE = /\p{Surrogate}/u;

const lineTexts = (lines: WireLine[] = []): NamedText[] =>
  lines.flatMap(({ sku, gtin }, index): NamedText[] => [
    [`line_items[${index}].sku`, sku],
    [`line_items[${index}].gtin`, gtin],
  ]);

const lineOf = (line: WireLine): RecordLine => ({
  sku: line.sku ?? null,
  gtin: line.gtin ?? null,
  quantity: line.quantity,
  unitPrice: line.unit_price ?? null,
});

const KNOWN_CURRENCIES: ReadonlySet<unknown> = new Set(CURRENCY_CODES);

/** A refund's money; a value that does not fit is left out, because no version has refused one. */
const moneyOf = ({ currency, total }: { currency?: unknown; total?: unknown }) => ({
  currency: KNOWN_CURRENCIES.has(currency) ? (currency as string) : null,
  total: Number.isSafeInteger(total) && (total as number) >= 0 ? (total as number) : null,
});

const RULES: { readonly [K in EventKind]: KindRules<K> } = {
  sale: {
    texts: ({ line_items: lines }) => lineTexts(lines),
    read: ({ currency, total, line_items: lines, customer = null, meta = null }) => ({
      currency,
      total,
      lines: lines.map(lineOf),
      customer,
      meta,
    }),
  },
  refund: {
    texts: (body) => [
      ['sale_external_id', body.sale_external_id],
      ['reason', body.reason],
      ...lineTexts(body.line_items),
    ],
    read: (body) => ({
      saleExternalId: body.sale_external_id,
      reason: body.reason ?? null,
      restock: body.restock ?? true,
      ...moneyOf(body),
      lines: body.line_items?.map(lineOf) ?? null,
    }),
  },
  inventory: {
    texts: ({ counts }) =>
      counts.flatMap(({ sku, reason }, index): NamedText[] => [
        [`counts[${index}].sku`, sku],
        [`counts[${index}].reason`, reason],
      ]),
    read({ mode, counts }, { occurredAtMs }, receivedAtMs) {
      const repeated = mode === 'absolute' ? firstRepeated(counts.map(({ sku }) => sku)) : -1;
      if (repeated >= 0) {
        const rule = 'must not name an item twice in an absolute count';
        return refuse(`counts[${repeated}].sku`, rule);
      }
      if (mode === 'absolute' && occurredAtMs > receivedAtMs + LIMITS.countAheadMs) {
        return refuse('occurred_at', 'must not be more than 5 minutes ahead for an absolute count');
      }
      const lines = counts.map(({ sku, quantity, reason = null }) => ({ sku, quantity, reason }));
      return { mode, counts: lines };
    },
  },
  closing: {
    texts: ({ external_ids: ids = [] }) =>
      ids.map((id, index): NamedText => [`external_ids[${index}]`, id]),
    read({ totals, external_ids: ids, ...body }) {
      const from = parseOccurredAt(body.from);
      if (!from.ok) return refuse('from', from.rule);
      const to = parseOccurredAt(body.to);
      if (!to.ok) return refuse('to', to.rule);
      if (to.epochMs <= from.epochMs) return refuse('to', 'must be later than from');
      if (to.epochMs - from.epochMs > LIMITS.closingMs) {
        return refuse('to', 'must be at most 31 days and an hour later than from');
      }
      const repeated = firstRepeated(totals.map(({ currency }) => currency));
      if (repeated >= 0) {
        return refuse(`totals[${repeated}].currency`, 'must not name a currency twice');
      }
      return {
        fromMs: from.epochMs,
        toMs: to.epochMs,
        totals,
        externalIds: ids === undefined ? null : [...new Set(ids)],
      };
    },
  },
};

const readKind = <K extends EventKind>(
  kind: K,
  body: JsonValue,
  receivedAtMs: number
): Read<RecordOf<K>> => {
  const validate: ValidateFunction<WireBodies[K]> = VALIDATORS[kind];
  if (!validate(body)) {
    return { ok: false, issue: describeSchemaErrors(kind, validate.errors ?? []) };
  }
  const rules: KindRules<K> = RULES[kind];
  const { external_id: externalId, occurred_at: occurredAt, location_ref: locationRef } = body;
  const texts = rules.texts(body);
  for (const [field, text] of [
    ['external_id', externalId],
    ['location_ref', locationRef],
    ...texts,
  ] as const) {
    if (text !== undefined && LONE_SURROGATE.test(text)) {
      return refuse(field, 'must be valid Unicode (it contains half of a surrogate pair)');
    }
  }
  const time = parseOccurredAt(occurredAt);
  if (!time.ok) return refuse('occurred_at', time.rule);
  const base: RecordBase = {
    externalId,
    occurredAt,
    occurredAtMs: time.epochMs,
    ...effectiveTime(time.epochMs, receivedAtMs),
    locationRef: locationRef ?? null,
  };
  const own = rules.read(body, base, receivedAtMs);
  if ('ok' in own) return own;
  return { ok: true, value: { kind, ...base, ...own } as unknown as RecordOf<K> };
};

/** `readRecord`, step by step. @param nodes  values that it may have */
export function* recordSteps<K extends EventKind>(
  kind: K,
  body: Uint8Array,
  receivedAtMs: number,
  nodes: number
): Steps<Read<RecordOf<K>>> {
  const json = yield* strictJsonSteps(body, LIMITS.depth, nodes);
  if (!json.ok) return json;
  const reading = readKind(kind, json.value, receivedAtMs);
  // One that is whole only because a double rounded it; the schema cannot see that.
  const rounded = [...json.roundedToInteger].find((field) => INTEGER_FIELD.test(field));
  return reading.ok && rounded
    ? refuse(rounded, 'must be a whole number, not a fraction')
    : reading;
}

/**
 * Reads raw bytes as a record: strict JSON, the published schema, then rules beyond schemas (real calendar day, valid
 * Unicode in ids, unique items in a count, a count at most 5 minutes ahead). A refusal is a 400 `schema_invalid` whose
 * `message` names field and rule. Never throws. docs/contract-pos.md#answers
 * @param receivedAtMs when the request arrived, epoch milliseconds
 */
export const readRecord = <K extends EventKind>(
  kind: K,
  body: Uint8Array,
  receivedAtMs: number
): Read<RecordOf<K>> => inOneGo(recordSteps(kind, body, receivedAtMs, Infinity));

/** A sale or inventory names its location if several are mapped. Null: it passes. Duplicates are not checked. */
export const checkLocationRef = (record: PosRecord, mappedLocations: number): BodyIssue | null => {
  if (record.kind === 'refund' || mappedLocations < 2 || record.locationRef !== null) return null;
  return refuse('location_ref', 'is required, because this connection maps several locations')
    .issue;
};
