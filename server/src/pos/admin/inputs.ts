import { z } from '@strapi/utils';
import { isSupportedCountry } from 'libphonenumber-js';
import {
  CONNECTION_MODES,
  CONNECTION_SCOPES,
  CONNECTION_TYPES,
  CUSTOMER_RULES,
  POS_EVENT_KINDS,
  POS_EVENT_STATES,
  SALES_GROUPS,
  SILENCE_LIMITS,
  WEEKDAYS,
} from '../../../../shared/contracts/pos';
import { pageQuery, viewQuery } from '../../http/pagination';
import { identifier, locationName } from '../../stock/inputs';
import { coded, flag, idText, labelText, LARGEST_ID, readOnlyKeys } from '../../http/validation';
import { BEGINNING, daysBetween, END, isDay } from '../rules/shop-time';

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

const timeOfDay = (form: RegExp, rule: string) =>
  z.string().refine((text) => form.test(text), coded(rule, 'time_of_day'));

const openHours = z
  .array(
    z
      .strictObject({
        days,
        from: timeOfDay(BEGINNING, 'must be a time of day, such as 09:00'),
        to: timeOfDay(END, 'must be a time of day, such as 18:00, or 24:00'),
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
  scopes: z.array(z.enum(CONNECTION_SCOPES)).transform((list) => [...new Set(list)]),
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
  ...viewQuery,
  /** One state, or several with commas between them. */
  state: z
    .string()
    .transform((text) => text.split(','))
    .pipe(z.array(z.enum(POS_EVENT_STATES)).max(POS_EVENT_STATES.length))
    .optional(),
  kind: z.enum(POS_EVENT_KINDS).optional(),
  connection,
  external_id: z.string().min(1).max(512).optional(),
  /** Only sales whose customer could not be attached to a contact. */
  customer_error: z
    .literal('true')
    .transform(() => true as const)
    .optional(),
  /** Part of an id, an SKU or a customer, or an amount; docs/shop.md#till-records. */
  q: z.string().trim().min(1).max(200).optional(),
});

export const refusalsQuery = z.object({ ...pageQuery, connection });

const day = z
  .string()
  .refine(isDay, { message: 'must be a day of the calendar, such as 2026-03-01' });

/** No report needs more than a few years at once. */
const MAX_DAYS = 1_100;

const checkRange = (
  { from, to }: Record<'from' | 'to', string>,
  context: Pick<z.RefinementCtx, 'addIssue'>
): void => {
  const wrong = (rule: ReturnType<typeof coded>) =>
    context.addIssue({ code: 'custom', path: ['to'], ...rule });
  if (from > to) wrong(coded('must not be before from', 'before_from'));
  if (daysBetween(from, to) >= MAX_DAYS) {
    const maximum = { maximum: MAX_DAYS };
    wrong(coded(`must be less than ${MAX_DAYS} days after from`, 'too_large', maximum));
  }
};

/** Days of the shop's time zone, both included; `YYYY-MM-DD`. */
const range = { from: day, to: day };

export const salesSummaryQuery = z.object(range).superRefine(checkRange);

export const salesDaysQuery = z
  .object({
    ...range,
    connection,
    item: idText('an item').optional(),
    group: z.enum(SALES_GROUPS).default('day'),
    format: z.enum(['json', 'csv']).default('json'),
    pieces: flag.optional(),
  })
  .superRefine(checkRange);

export type CreateConnection = z.infer<typeof createConnectionInput>;
export type UpdateConnection = z.infer<typeof updateConnectionInput>;
export type SalesQuery = Omit<z.infer<typeof salesDaysQuery>, 'format'>;
export type PosEventsQuery = z.infer<typeof posEventsQuery>;
