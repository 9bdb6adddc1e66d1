import type { ErrorObject } from 'ajv';

import { formatPath, type JsonPath } from './json-path';
import { OCCURRED_AT_PATTERN } from '../../stock/rules/occurred-at';
import { excludedKinds, REQUIRED_FIELDS, tellingFields } from './schemas/kinds';
import type { EventKind } from './states';
import type { BodyIssue } from './strict-json';

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
export const describeSchemaErrors = (
  kind: EventKind,
  errors: readonly ErrorObject[]
): BodyIssue => {
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
