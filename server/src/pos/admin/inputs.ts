import { z } from '@strapi/utils';
import { isSupportedCountry } from 'libphonenumber-js';
import {
  CONNECTION_TYPES,
  CUSTOMER_RULES,
  SALES_GROUPS,
  SILENCE_LIMITS,
  WEEKDAYS,
} from '../../../../shared/contracts/pos';
import { pageQuery } from '../../http/pagination';
import { identifier, locationName } from '../../stock/inputs';
import { coded, flag, idText, labelText, LARGEST_ID, readOnlyKeys } from '../../http/validation';
import { daysBetween, isDay } from '../rules/days';
import { BEGINNING, END } from '../rules/open-hours';
import { CONNECTION_MODES, EVENT_KINDS, EVENT_STATES, SCOPES } from '../rules/records';

/** zod schemas of the admin routes of connections and POS events. */

/** As an answer has a location, too, so that it may be sent back. */
const locationOrAnswered = z.union(
  [
    locationName,
    z
      .object({ id: z.number().int().min(1).max(LARGEST_ID) })
      .transform(({ id }) => id)
      .pipe(z.number()),
  ],
  { error: 'must be the id or the code of a location' }
);

const locations = z
  .array(z.strictObject({ ref: identifier, location: locationOrAnswered }))
  .max(500)
  .refine(
    (list) => new Set(list.map(({ ref }) => ref)).size === list.length,
    coded('must not name a ref twice', 'named_twice')
  );

const days = z
  .array(z.enum(WEEKDAYS))
  .min(1)
  .refine(
    (list) => new Set(list).size === list.length,
    coded('must not name a day twice', 'named_twice')
  );

const openHours = z
  .array(
    z
      .strictObject({
        days,
        from: z
          .string()
          .refine(
            (text) => BEGINNING.test(text),
            coded('must be a time of day, such as 09:00', 'time_of_day')
          ),
        to: z
          .string()
          .refine(
            (text) => END.test(text),
            coded('must be a time of day, such as 18:00, or 24:00', 'time_of_day')
          ),
      })
      .refine(({ from, to }) => from !== to, {
        path: ['to'],
        ...coded('must differ from `from`; a whole day is 00:00 to 24:00', 'same_time'),
      })
  )
  .min(1)
  .max(SILENCE_LIMITS.openHours)
  .nullable();

const fields = {
  name: labelText(),
  type: z.enum(CONNECTION_TYPES),
  scopes: z.array(z.enum(SCOPES)).transform((list) => [...new Set(list)]),
  mode: z.enum(CONNECTION_MODES),
  group: identifier.nullable(),
  locations,
  customers: z.enum(CUSTOMER_RULES),
  country: z
    .string()
    .refine(isSupportedCountry, coded('must be an ISO 3166 country code, such as GB', 'country'))
    .nullable(),
  expected_every_minutes: z.number().int().min(1).max(SILENCE_LIMITS.minutes).nullable(),
  open_hours: openHours,
};

export const createConnectionInput = z.strictObject({
  ...fields,
  type: fields.type.default('Generic webhook'),
  mode: fields.mode.default('test'),
  group: fields.group.optional(),
  locations: locations.default([]),
  customers: fields.customers.default('match'),
  country: fields.country.default(null),
  expected_every_minutes: fields.expected_every_minutes.default(null),
  open_hours: openHours.default(null),
});

export const updateConnectionInput = z.strictObject({
  ...readOnlyKeys('id', 'key', 'silent_since', 'disabled_reason', 'disabled_because'),
  ...readOnlyKeys('revoked_at', 'last_seen_at', 'clock_skew_seconds', 'last_error'),
  ...readOnlyKeys('last_error_at', 'created_at', 'updated_at'),
  ...z.object({ ...fields, active: z.boolean() }).partial().shape,
});

const connection = idText('a connection').optional();

export const posEventsQuery = z.object({
  ...pageQuery,
  /** One state, or several with commas between them. */
  state: z
    .string()
    .transform((text) => text.split(','))
    .pipe(z.array(z.enum(EVENT_STATES)).max(EVENT_STATES.length))
    .optional(),
  kind: z.enum(EVENT_KINDS).optional(),
  connection,
  external_id: z.string().min(1).max(512).optional(),
  /** Sales alone whose customer could not be attached to a contact. */
  customer_error: z
    .literal('true')
    .transform(() => true as const)
    .optional(),
  /** Part of an id, an SKU or a customer, or an amount; docs/tills.md#looking-into-the-log. */
  q: z.string().trim().min(1).max(200).optional(),
});

export const refusalsQuery = z.object({ ...pageQuery, connection });

const day = z
  .string()
  .refine(isDay, { message: 'must be a day of the calendar, such as 2026-03-01' });

/** No report needs more than a few years at once. */
const MAX_DAYS = 1_100;

const inOrder = ({ from, to }: { from: string; to: string }): boolean => from <= to;
const notTooLong = ({ from, to }: { from: string; to: string }): boolean =>
  daysBetween(from, to) < MAX_DAYS;
const ORDER = { path: ['to'], ...coded('must not be before from', 'before_from') };
const LENGTH = {
  path: ['to'],
  ...coded(`must be less than ${MAX_DAYS} days after from`, 'too_large', { maximum: MAX_DAYS }),
};

/** Days of the shop's time zone, both included. */
const range = { from: day, to: day };

export const salesSummaryQuery = z.object(range).refine(inOrder, ORDER).refine(notTooLong, LENGTH);

export const salesDaysQuery = z
  .object({
    ...range,
    connection,
    item: idText('an item').optional(),
    group: z.enum(SALES_GROUPS).default('day'),
    format: z.enum(['json', 'csv']).default('json'),
    pieces: flag.optional(),
  })
  .refine(inOrder, ORDER)
  .refine(notTooLong, LENGTH);

export type CreateConnection = z.infer<typeof createConnectionInput>;
export type UpdateConnection = z.infer<typeof updateConnectionInput>;
export type RefusalsQuery = z.infer<typeof refusalsQuery>;
export type PosEventsQuery = z.infer<typeof posEventsQuery>;
