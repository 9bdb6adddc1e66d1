import type { z } from '@strapi/utils';

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
 * What is wrong with a value where its schema has no message of its own: the rule that it breaks,
 * to be read after the name of its field.
 */
export const plainWords: z.core.$ZodErrorMap = (issue) => {
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
