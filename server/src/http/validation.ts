import { errors, z } from '@strapi/utils';
import type { CodedRefusal, RefusalCode, RefusalValues } from '../../../shared/contracts/refusals';
import { codeOf, refusal, type Refusal } from '../runtime/refusal';

/** The arguments of a schema's `refine` or `addIssue`, with the code that `codeOfIssue` finds again. */
export const coded = (message: string, code: RefusalCode, values?: RefusalValues) => ({
  message,
  params: refusal(message, code, values),
});

/** Codes of a bound, by what is bounded. */
const BOUNDS = {
  too_small: { string: 'empty', array: 'choose_one', number: 'too_small' },
  too_big: { string: 'too_long', array: 'too_many', number: 'too_large' },
} as const;

const kindOf = (origin: string) => (origin === 'string' || origin === 'array' ? origin : 'number');

/** The code of a schema's issue; undefined if only its message tells. */
const codeOfIssue = (issue: z.core.$ZodIssue): CodedRefusal | undefined => {
  if (issue.code !== 'custom' && issue.input === undefined) return { code: 'required' };
  switch (issue.code) {
    case 'custom':
      return issue.params?.code === undefined ? undefined : codeOf(issue.params as CodedRefusal);
    case 'too_small':
      return {
        code: BOUNDS.too_small[kindOf(issue.origin)],
        values: { minimum: Number(issue.minimum) },
      };
    case 'too_big':
      return {
        code: BOUNDS.too_big[kindOf(issue.origin)],
        values: { maximum: Number(issue.maximum) },
      };
    case 'unrecognized_keys':
      return { code: 'unknown_field' };
    case 'invalid_format':
      return { code: issue.format === 'datetime' ? 'time' : 'invalid' };
    default:
      return { code: 'invalid' };
  }
};

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

const units = (origin: string): string => (origin === 'string' ? 'characters' : 'entries');
const isNumeric = (origin: string): boolean => ['number', 'int', 'bigint'].includes(origin);

/**
 * The message for a value where its schema has none of its own: the broken rule, to be read after the
 * name of its field.
 */
const plainWords: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case 'invalid_type': {
      if (issue.input === undefined) return 'is required';
      const type = TYPES[issue.expected];
      return type ? `must be ${type}` : 'is not valid';
    }
    case 'invalid_value': {
      const values = issue.values.map(String).join(', ');
      return issue.values.length === 1 ? `must be ${values}` : `must be one of ${values}`;
    }
    case 'too_small':
      if (isNumeric(issue.origin)) return `must be at least ${issue.minimum}`;
      if (Number(issue.minimum) === 1) return 'must not be empty';
      return `must have at least ${issue.minimum} ${units(issue.origin)}`;
    case 'too_big':
      if (isNumeric(issue.origin)) return `must be at most ${issue.maximum}`;
      return `must have at most ${issue.maximum} ${units(issue.origin)}`;
    case 'invalid_format': {
      const format = FORMATS[issue.format];
      return format ? `must be ${format}` : 'is not valid';
    }
    default:
      return 'is not valid';
  }
};

/** A field's error in the host's format, coded where it can be. */
interface FieldIssue extends Partial<CodedRefusal> {
  path: string[];
  message: string;
  name: 'ValidationError';
}

export const issue = (path: string[], message: string, code?: CodedRefusal): FieldIssue => ({
  path,
  message,
  name: 'ValidationError',
  ...(code && codeOf(code)),
});

/** Nobody reads more of them, and to write them all can take a minute. */
export const MAX_NAMED = 20;

const issuesOf = ({ issues }: z.ZodError): FieldIssue[] =>
  issues
    .slice(0, MAX_NAMED)
    .flatMap((found) => {
      const path = found.path.map(String);
      const code = codeOfIssue(found);
      if (found.code !== 'unrecognized_keys') return [issue(path, found.message, code)];
      const keys = found.keys.slice(0, MAX_NAMED);
      return keys.map((key) => issue([...path, key], 'is not a known field', code));
    })
    .slice(0, MAX_NAMED);

/** A missing field and a wrong one have the same code of zod; what was given tells them apart. */
const PARSING = { reportInput: true, error: plainWords } as const;

/** A 400 that names what is wrong with each field. */
export const issueErrors = (issues: readonly FieldIssue[]): errors.ValidationError => {
  const message = issues
    .map(({ path, message: rule }) => `${path.length > 0 ? path.join('.') : 'body'}: ${rule}`)
    .join('; ');
  return new errors.ValidationError(message, { errors: issues });
};

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

const requireShortLists = (input: unknown): void => {
  const path = longListIn(input);
  if (path) throw issueErrors([issue([...path], `must have at most ${MAX_ENTRIES} entries`)]);
};

/**
 * Checks a client's input.
 * @throws ValidationError (400) in the host's format, whose message and `details.errors` name each
 * field by its path.
 */
export const parseInput = <S extends z.ZodType>(schema: S, input: unknown): z.infer<S> => {
  requireShortLists(input);
  const result = schema.safeParse(input ?? {}, PARSING);
  if (result.success) return result.data;
  throw issueErrors(issuesOf(result.error));
};

/** Rules of a field that need the database or the network, so that no schema can check them. */
export type FieldRules<T> = {
  [K in keyof T]?: (value: NonNullable<T[K]>) => Promise<Refusal | null>;
};

/**
 * Checks a client's input by its schema and by rules of single fields. A rule is asked of a value
 * that is right by itself, whatever else is wrong, so that everything is named together.
 * @throws ValidationError (400) as `parseInput` does.
 */
export const parseWithRules = async <S extends z.ZodObject>(
  schema: S,
  input: unknown,
  rules: FieldRules<z.infer<S>>
): Promise<z.infer<S>> => {
  requireShortLists(input);
  const result = schema.safeParse(input ?? {}, PARSING);
  const issues = result.success ? [] : issuesOf(result.error);
  const given: Readonly<Record<string, unknown>> = z
    .record(z.string(), z.unknown())
    .safeParse(input).success
    ? (input as Record<string, unknown>)
    : {};
  const checks = Object.entries<((value: never) => Promise<Refusal | null>) | undefined>(rules);
  for (const [key, rule] of checks) {
    const field = (schema.shape as Record<string, z.ZodType>)[key]?.safeParse(given[key]);
    if (!rule || !field?.success || field.data === undefined || field.data === null) continue;
    const wrong = await rule(field.data as never);
    if (wrong) issues.push(issue([key], wrong.message, wrong));
  }
  if (result.success && issues.length === 0) return result.data;
  throw issueErrors(issues);
};

/** A field's error; coded where a screen may have to show it. */
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

/**
 * A key of an answer that its holder may send back and that nothing writes: what is given for it is
 * left out of the input.
 */
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

/** `true` or `false` in a query string. */
export const flag = z.enum(['true', 'false']).transform((text) => text === 'true');

/** An input without what nobody said. */
export const definedOf = (input: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));

/** The largest id of tables whose ids are of 32 bits. */
export const LARGEST_ID = 2_147_483_647;

/** The id of a row as a query has it. @param what  it is the id of, such as `a webhook` */
export const idText = (what: string) =>
  z
    .string()
    .regex(/^[1-9]\d{0,9}$/, { message: `must be the id of ${what}` })
    .transform(Number)
    .pipe(
      z
        .number()
        .int()
        .max(LARGEST_ID, { message: `must be the id of ${what}` })
    );

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
    .refine((text) => !/\p{Surrogate}/u.test(text), coded('must be valid text', 'invalid'))
    .trim()
    .min(1)
    .max(maximum);

/** A positive integer id from a path; anything else cannot name a row. */
export const idFromPath = (value: unknown, what: string): number => {
  const id = /^[1-9]\d{0,9}$/.test(String(value)) ? Number(value) : Number.NaN;
  if (!Number.isSafeInteger(id) || id > LARGEST_ID) {
    throw new errors.NotFoundError(`${what} not found`);
  }
  return id;
};
