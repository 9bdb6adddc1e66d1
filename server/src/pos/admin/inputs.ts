import { z } from '@strapi/utils';
import { CONNECTION_TYPES } from '../../../../shared/contracts/pos';
import { pageQuery } from '../../http/pagination';
import { identifier, locationName } from '../../stock/inputs';
import { labelText } from '../../http/validation';
import { CONNECTION_MODES, EVENT_STATES, RECORD_KINDS, SCOPES } from '../rules/states';

/** zod schemas of the admin routes of connections and POS events. */

const name = labelText();

const scopes = z.array(z.enum(SCOPES)).transform((list) => [...new Set(list)]);

const locations = z
  .array(z.object({ ref: identifier, location: locationName }))
  .max(500)
  .refine((list) => new Set(list.map(({ ref }) => ref)).size === list.length, {
    message: 'must not name a ref twice',
  });

const group = identifier.nullable();
const type = z.enum(CONNECTION_TYPES);

export const createConnectionInput = z.object({
  name,
  type: type.default('Generic webhook'),
  scopes,
  mode: z.enum(CONNECTION_MODES).default('test'),
  group: group.optional(),
  locations: locations.default([]),
});

export const updateConnectionInput = z.object({
  name: name.optional(),
  type: type.optional(),
  scopes: scopes.optional(),
  mode: z.enum(CONNECTION_MODES).optional(),
  group: group.optional(),
  locations: locations.optional(),
  active: z.boolean().optional(),
});

export const connectionsQuery = z.object({ ...pageQuery });

const id = z
  .string()
  .regex(/^[1-9]\d{0,8}$/)
  .transform(Number);

export const posEventsQuery = z.object({
  ...pageQuery,
  /** One state, or several with commas between them. */
  state: z
    .string()
    .transform((text) => text.split(','))
    .pipe(z.array(z.enum(EVENT_STATES)).max(EVENT_STATES.length))
    .optional(),
  kind: z.enum(RECORD_KINDS).optional(),
  connection: id.optional(),
  external_id: z.string().min(1).max(512).optional(),
});

export type CreateConnection = z.infer<typeof createConnectionInput>;
export type UpdateConnection = z.infer<typeof updateConnectionInput>;
export type PosEventsQuery = z.infer<typeof posEventsQuery>;
