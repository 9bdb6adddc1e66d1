import { errors, z } from '@strapi/utils';
import type { CodedRefusal, RefusalCode, RefusalValues } from '../../../shared/contracts/refusals';
import { codeOf, refusal, type Refusal } from '../runtime/refusal';
import { isRecord } from '../runtime/text';

/** The arguments of a schema's `refine` or `addIssue`, with the code that its issue then has. */
export const coded = (message: string, code: RefusalCode, values?: RefusalValues) => ({
  message,
  params: refusal(message, code, values),
});

/** Types as a schema expects them, in words; others need none. */
const TYPES: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

const FORMATS: Readonly<Record<string, string>> = {
  datetime: 'a time with its offset, such as 2030-01-31T09:15:00Z',
  date: 'a date, such as 2030-01-31',
  email: 'an e-mail address',
  url: 'a web address',
};

const NUMBERS: readonly string[] = ['number', 'int', 'bigint'];
const units = (origin: string): string => (origin === 'string' ? 'characters' : 'entries');

/** The broken rule, phrased to follow the field name, and its code; custom rules have a code only if `coded`. */
const judge = (found: z.core.$ZodRawIssue): { rule: string; code?: CodedRefusal } => {
  const invalid: CodedRefusal = { code: found.input === undefined ? 'required' : 'invalid' };
  switch (found.code) {
    case 'custom': {
      const { code, values } = (found.params ?? {}) as Partial<CodedRefusal>;
      return { rule: 'is not valid', code: code && codeOf({ code, values }) };
    }
    case 'unrecognized_keys':
      return { rule: 'is not a known field', code: { code: 'unknown_field' } };
    case 'invalid_type': {
      const type = TYPES[found.expected];
      const rule = type ? `must be ${type}` : 'is not valid';
      return { rule: found.input === undefined ? 'is required' : rule, code: invalid };
    }
    case 'invalid_value': {
      const values = found.values.map(String).join(', ');
      const rule = found.values.length === 1 ? `must be ${values}` : `must be one of ${values}`;
      return { rule, code: invalid };
    }
    case 'too_small': {
      const { origin } = found;
      const minimum = Number(found.minimum);
      const values = { minimum };
      if (NUMBERS.includes(origin)) {
        return { rule: `must be at least ${minimum}`, code: { code: 'too_small', values } };
      }
      const rule =
        minimum === 1 ? 'must not be empty' : `must have at least ${minimum} ${units(origin)}`;
      return { rule, code: { code: origin === 'string' ? 'empty' : 'choose_one', values } };
    }
    case 'too_big': {
      const { origin } = found;
      const maximum = Number(found.maximum);
      const values = { maximum };
      if (NUMBERS.includes(origin)) {
        return { rule: `must be at most ${maximum}`, code: { code: 'too_large', values } };
      }
      const code = origin === 'string' ? 'too_long' : 'too_many';
      return { rule: `must have at most ${maximum} ${units(origin)}`, code: { code, values } };
    }
    case 'invalid_format': {
      const format = FORMATS[found.format];
      const code = found.format === 'datetime' ? { code: 'time' as const } : invalid;
      return { rule: format ? `must be ${format}` : 'is not valid', code };
    }
    default:
      return { rule: 'is not valid', code: invalid };
  }
};

/** A field's error in the host's format, with a code if possible. */
export const issue = (path: string[], message: string, code?: CodedRefusal) => ({
  path,
  message,
  name: 'ValidationError',
  ...(code && codeOf(code)),
});

export type FieldIssue = ReturnType<typeof issue>;

/** A limit: more issues help no reader, and formatting them all can take a minute. */
export const MAX_NAMED = 20;

const issuesOf = ({ issues }: z.ZodError): FieldIssue[] =>
  issues
    .slice(0, MAX_NAMED)
    .flatMap((found) => {
      const path = found.path.map(String);
      const { rule, code } = judge(found as z.core.$ZodRawIssue);
      if (found.code !== 'unrecognized_keys') return [issue(path, found.message, code)];
      return found.keys.slice(0, MAX_NAMED).map((key) => issue([...path, key], rule, code));
    })
    .slice(0, MAX_NAMED);

/** A missing field and a wrong one have the same code of zod; what was given tells them apart. */
const PARSING: z.core.ParseContext<z.core.$ZodIssue> = {
  reportInput: true,
  error: (found) => judge(found).rule,
};

const textOf = (issues: readonly FieldIssue[]): string =>
  issues
    .map(({ path, message }) => `${path.length > 0 ? path.join('.') : 'body'}: ${message}`)
    .join('; ');

/** A 400 that names what is wrong with each field. */
export const issueErrors = (issues: readonly FieldIssue[]): errors.ValidationError =>
  new errors.ValidationError(textOf(issues), { errors: issues });

/** Anything longer is a file, and is imported as one; a schema takes minutes to refuse it. */
const MAX_ENTRIES = 5000;
/** MariaDB refuses JSON that is nested deeper than 32, and a value may lie in a field of its own. */
export const MAX_DEPTH = 28;

/** The path of a list that is too long to be judged; null: none. */
const longListIn = (input: unknown, path: readonly string[] = []): readonly string[] | null => {
  if (typeof input !== 'object' || input === null || path.length > MAX_DEPTH) return null;
  if (Array.isArray(input) && input.length > MAX_ENTRIES) return path;
  for (const [key, value] of Object.entries(input)) {
    const found = longListIn(value, [...path, key]);
    if (found) return found;
  }
  return null;
};

/** Judges an input by its schema. @returns its data as well, if there are no issues */
const judgeBy = <S extends z.ZodType>(schema: S, input: unknown) => {
  const path = longListIn(input);
  if (path) throw issueErrors([issue([...path], `must have at most ${MAX_ENTRIES} entries`)]);
  const { data, error } = schema.safeParse(input ?? {}, PARSING);
  return { data: data as z.infer<S>, issues: error ? issuesOf(error) : [] };
};

/** As `parseInput`, and does not throw. @returns the input, or what is wrong with it */
export const judgeInput = <S extends z.ZodType>(schema: S, input: unknown) => {
  const { data, issues } = judgeBy(schema, input);
  return { data, problems: textOf(issues) };
};

/** Checks a client's input; throws ValidationError (400), whose message and `details.errors` name each field. */
export const parseInput = <S extends z.ZodType>(schema: S, input: unknown): z.infer<S> => {
  const { data, issues } = judgeBy(schema, input);
  if (issues.length > 0) throw issueErrors(issues);
  return data;
};

/** Rules of a field that need the database or the network, so that no schema can check them. */
export type FieldRules<T> = {
  [K in keyof T]?: (value: NonNullable<T[K]>) => Promise<Refusal | null>;
};

/** Checks input by schema and by rules of valid fields, so all issues appear together. @throws ValidationError (400) */
export const parseWithRules = async <S extends z.ZodObject>(
  schema: S,
  input: unknown,
  rules: FieldRules<z.infer<S>>
): Promise<z.infer<S>> => {
  const { data, issues } = judgeBy(schema, input);
  const given = isRecord(input) ? input : {};
  const checks = Object.entries<((value: never) => Promise<Refusal | null>) | undefined>(rules);
  for (const [key, rule] of checks) {
    const field = (schema.shape as Record<string, z.ZodType>)[key]?.safeParse(given[key]);
    if (!rule || !field?.success || field.data === undefined || field.data === null) continue;
    const wrong = await rule(field.data as never);
    if (wrong) issues.push(issue([key], wrong.message, wrong));
  }
  if (issues.length > 0) throw issueErrors(issues);
  return data;
};

/** A field's error, with a code if a screen may have to show it. */
export type FieldProblem = { path: string; message: string } & Partial<CodedRefusal>;

/** A 400 that names several fields. */
export const fieldErrors = (found: readonly FieldProblem[]): errors.ValidationError =>
  issueErrors(
    found.map(({ path, message, code, values }) =>
      issue(path.split('.'), message, code && { code, values })
    )
  );

/** A 400 about one field, for rules that a schema cannot express. */
export const fieldError = (path: string, wrong: string | Refusal): errors.ValidationError =>
  fieldErrors([{ path, ...(typeof wrong === 'string' ? { message: wrong } : wrong) }]);

/** A key of an answer that its holder may send back: nothing writes it, and the input lacks it. */
export const readOnly = z
  .unknown()
  .transform(() => undefined)
  // A type after the transform, so that the host's OpenAPI document can name it.
  .pipe(z.unknown() as unknown as z.ZodType<undefined, undefined>)
  .optional()
  .meta({ readOnly: true });

/** Several of them, as a part of the shape of `z.strictObject`. */
export const readOnlyKeys = <const K extends string>(
  ...keys: readonly K[]
): Record<K, typeof readOnly> =>
  Object.fromEntries(keys.map((key) => [key, readOnly])) as Record<K, typeof readOnly>;

export const flag = z.enum(['true', 'false']).transform((text) => text === 'true');

export const definedOf = (input: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));

/** The largest id of tables whose ids are of 32 bits. */
export const LARGEST_ID = 2_147_483_647;

/** The id of a row as a query has it. @param what  it is the id of, such as `a webhook` */
export const idText = (what: string) => {
  const message = { message: `must be the id of ${what}` };
  return z
    .string()
    .regex(/^[1-9]\d{0,9}$/, message)
    .transform(Number)
    .pipe(z.number().int().max(LARGEST_ID, message));
};

/** Half of a pair: no text that a database stores has one. */
export const LONE_SURROGATE = /\p{Surrogate}/u;

/** Characters that end a line, or mean something to a terminal instead of to a reader. */
const CONTROL = /[\p{Cc}\u2028\u2029]/u;

/** An owner's name for something: one line of text, shown in lists, mails and logs. */
export const labelText = (maximum = 255) =>
  z
    .string()
    .refine(
      (text) => !CONTROL.test(text),
      coded('must not contain line breaks or other control characters', 'control_characters')
    )
    .refine((text) => !LONE_SURROGATE.test(text), coded('must be valid text', 'invalid'))
    .trim()
    .min(1)
    .max(maximum);

const ROW_ID = idText('a row');

/** A positive integer id from a path. @throws NotFoundError (404) for anything else: it cannot name a row */
export const idFromPath = (value: unknown, what: string): number => {
  const id = ROW_ID.safeParse(String(value));
  if (!id.success) throw new errors.NotFoundError(`${what} not found`);
  return id.data;
};

/** Characters that no database stores: PostgreSQL's text has no NUL, its JSON no half of a surrogate pair. */
const textIssue = (text: string): string | null => {
  if (text.includes('\0')) return 'must not contain a NUL character';
  return LONE_SURROGATE.test(text) ? 'must be valid Unicode' : null;
};

/** A field's name as an answer may show it. */
export const printable = (key: string): string =>
  key.slice(0, 64).replace(/[\0\p{Surrogate}]/gu, '\ufffd');

/**
 * Finds text that a database would refuse, at any depth, and excessive nesting. Linear and without allocations, because
 * it runs for every request. Returns at most 20 issues, in input order, each with the path of its field.
 */
export const findInputIssues = (input: unknown): FieldIssue[] => {
  const issues: FieldIssue[] = [];
  const path: string[] = [];
  const report = (message: string, at = path): void => {
    issues.push(issue(at.map(printable), message));
  };
  // Recursion is safe: it ends at MAX_DEPTH.
  const visit = (value: unknown): void => {
    if (typeof value === 'string') {
      const message = textIssue(value);
      if (message) report(message);
      return;
    }
    if (typeof value !== 'object' || value === null) return;
    if (path.length > MAX_DEPTH) {
      report(`must not be nested deeper than ${MAX_DEPTH}`, path.slice(0, 1));
      return;
    }
    const isList = Array.isArray(value);
    for (const key in value) {
      if (issues.length >= MAX_NAMED) return;
      path.push(key);
      const message = isList ? null : textIssue(key);
      if (message) report(`its name ${message}`);
      else visit((value as Record<string, unknown>)[key]);
      path.pop();
    }
  };
  visit(input);
  return issues;
};

/** True if a path's part could be the id of anything: text a database takes, a number of 32 bits. */
export const isPossibleId = (text: string): boolean =>
  textIssue(text) === null && !(/^\d+$/.test(text) && Number(text) > LARGEST_ID);
