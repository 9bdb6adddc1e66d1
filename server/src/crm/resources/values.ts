import { z } from '@strapi/utils';

/**
 * What the columns can hold, so that every wrong value is a 400 and no database ever has to refuse
 * one: PostgreSQL takes no NUL, a decimal has ten digits, MySQL's dates end with the year 9999.
 */

const NUL = '\u0000';
const noNul = { message: 'must not contain a NUL character' };

export const text = (maximum = 255) =>
  z
    .string()
    .max(maximum)
    .refine((value) => !value.includes(NUL), noNul)
    .nullable()
    .optional();

export const requiredText = (maximum = 255) =>
  z
    .string()
    .max(maximum)
    .refine((value) => value.trim() !== '', { message: 'must not be empty' })
    .refine((value) => !value.includes(NUL), noNul);

export const email = z.email().max(254).nullable().optional();

export const integer = (minimum = -2_147_483_648, maximum = 2_147_483_647) =>
  z.number().int().min(minimum).max(maximum).nullable().optional();

/** Money and the like: two decimals, eight digits before them. */
export const decimal = z.number().min(-99_999_999.99).max(99_999_999.99).nullable().optional();

const within = (value: string): boolean => value >= '1900' && value < '9999-12-31';
const range = { message: 'must be a date from 1900 to 9998' };

export const time = z.iso.datetime({ offset: true }).refine(within, range).nullable().optional();
export const date = z.iso.date().refine(within, range).nullable().optional();

const BAG_MAX = 65_536;
/** A NUL as JSON writes it; behind an even number of backslashes it is text that says so. */
const WRITTEN_NUL = /(?<!\\)(?:\\\\)*\\u0000/;

/** An object of the site's own making. */
export const bag = z
  .record(z.string(), z.unknown())
  .refine((value) => JSON.stringify(value).length <= BAG_MAX, {
    message: `must not be longer than ${BAG_MAX} characters`,
  })
  .refine((value) => !WRITTEN_NUL.test(JSON.stringify(value)), noNul)
  .nullable()
  .optional();

/** A document id. What does not look like one names nothing, and never reaches a query. */
export const DOCUMENT_ID = /^[A-Za-z0-9_-]{1,64}$/;
export const reference = z
  .string()
  .regex(DOCUMENT_ID, { message: 'is not the id of a record' })
  .nullable()
  .optional();

export const ownerId = integer(1);
