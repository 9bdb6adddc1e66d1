import { errors, type z } from '@strapi/utils';

/**
 * Checks a client's input.
 * @throws ValidationError (400) in the host's format, whose message and `details.errors` name each
 * field by its path.
 */
export const parseInput = <S extends z.ZodType>(schema: S, input: unknown): z.infer<S> => {
  const result = schema.safeParse(input ?? {});
  if (result.success) return result.data;
  const details = result.error.issues.map((issue) => {
    const unknownKeys = issue.code === 'unrecognized_keys' ? issue.keys : [];
    const path = [...issue.path.map(String), ...unknownKeys.slice(0, 1)];
    return { path, message: issue.message, name: 'ValidationError' };
  });
  const message = details
    .map(({ path, message: rule }) => `${path.length > 0 ? path.join('.') : 'body'}: ${rule}`)
    .join('; ');
  throw new errors.ValidationError(message, { errors: details });
};

/** A 400 about one field, for rules that a schema cannot express. */
export const fieldError = (path: string, message: string): errors.ValidationError =>
  new errors.ValidationError(`${path}: ${message}`, {
    errors: [{ path: path.split('.'), message, name: 'ValidationError' }],
  });

/** A positive integer id from a path; anything else cannot name a row. */
export const idFromPath = (value: unknown, what: string): number => {
  const id = /^[1-9]\d{0,9}$/.test(String(value)) ? Number(value) : Number.NaN;
  if (!Number.isSafeInteger(id) || id > 2_147_483_647) {
    throw new errors.NotFoundError(`${what} not found`);
  }
  return id;
};
