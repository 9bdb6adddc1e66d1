import { z } from '@strapi/utils';
import { pageQuery } from '../pagination';
import { identifier, locationName } from '../stock/inputs';
import { CONNECTION_MODES, EVENT_STATES, RECORD_KINDS, SCOPES } from './rules/states';

/** zod schemas of the admin routes of connections and POS events. */

const name = z
  .string()
  .trim()
  .min(1)
  .max(255)
  .refine((text) => !/[\u0000\p{Surrogate}]/u.test(text), { message: 'must be valid text' });

const scopes = z.array(z.enum(SCOPES)).transform((list) => [...new Set(list)]);

const locations = z
  .array(z.object({ ref: identifier, location: locationName }))
  .max(500)
  .refine((list) => new Set(list.map(({ ref }) => ref)).size === list.length, {
    message: 'must not name a ref twice',
  });

const group = identifier.nullable();

export const createConnectionInput = z.object({
  name,
  scopes,
  mode: z.enum(CONNECTION_MODES).default('test'),
  group: group.optional(),
  locations: locations.default([]),
});

export const updateConnectionInput = z.object({
  name: name.optional(),
  scopes: scopes.optional(),
  mode: z.enum(CONNECTION_MODES).optional(),
  group: group.optional(),
  locations: locations.optional(),
});

export const connectionsQuery = z.object({ ...pageQuery });

const id = z
  .string()
  .regex(/^[1-9]\d{0,8}$/)
  .transform(Number);

export const posEventsQuery = z.object({
  ...pageQuery,
  state: z.enum(EVENT_STATES).optional(),
  kind: z.enum(RECORD_KINDS).optional(),
  connection: id.optional(),
  external_id: z.string().min(1).max(512).optional(),
});

export type CreateConnection = z.infer<typeof createConnectionInput>;
export type UpdateConnection = z.infer<typeof updateConnectionInput>;
export type PosEventsQuery = z.infer<typeof posEventsQuery>;
