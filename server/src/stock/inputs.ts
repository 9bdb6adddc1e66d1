import { z } from '@strapi/utils';
import { pageQuery } from '../http/pagination';
import { parseOccurredAt } from './rules/occurred-at';
import type { RefusalCode } from '../../../shared/contracts/refusals';
import {
  coded,
  flag,
  idText,
  labelText,
  LARGEST_ID,
  LONE_SURROGATE,
  readOnlyKeys,
} from '../http/validation';

/** No control characters: what a till can send is what an owner can name. */
const PLAIN = /^[^\u0000-\u001f\u007f-\u009f]*$/;

export const identifier = z
  .string()
  .min(1)
  .max(256)
  .refine(
    (text) => [...text].length <= 128,
    coded('must have at most 128 characters', 'too_long', { maximum: 128 })
  )
  .refine(
    (text) => PLAIN.test(text),
    coded('must not contain control characters', 'control_characters')
  )
  .refine((text) => !LONE_SURROGATE.test(text), coded('must be valid Unicode', 'invalid'));

const name = labelText();

const LARGEST = 1_000_000_000;
const quantity = z.number().int().min(-LARGEST).max(LARGEST);

export const rowId = z.number().int().min(1).max(LARGEST_ID);

export const locationName = z.union([rowId, identifier], {
  error: 'must be the id or the code of a location',
});

export const itemName = z.union([rowId, identifier], {
  error: 'must be the id or the SKU of an item',
});

export const createLocationInput = z.strictObject({ name, code: identifier });
export const updateLocationInput = z.strictObject({
  ...readOnlyKeys('id', 'is_default', 'created_at', 'updated_at'),
  name: name.optional(),
  code: identifier.optional(),
});

export const createItemInput = z.strictObject({
  sku: identifier,
  gtin: identifier.nullish(),
  name: name.nullish(),
  low_at: quantity.default(0),
  opening: z
    .array(z.strictObject({ location: locationName.optional(), quantity }))
    .max(1000)
    .default([]),
});

export const updateItemInput = z.strictObject({
  ...readOnlyKeys('id', 'archived_at', 'product', 'created_at', 'updated_at'),
  sku: identifier.optional(),
  gtin: identifier.nullable().optional(),
  name: name.nullable().optional(),
  low_at: quantity.optional(),
  /** Brings an archived item back; archiving is a DELETE. */
  archived: z.literal(false).optional(),
});

const reason = z
  .string()
  .max(1000)
  .refine(
    (text) => !LONE_SURROGATE.test(text) && !text.includes('\u0000'),
    coded('must be valid text', 'invalid')
  );

/** ISO 8601 with an offset, as epoch ms. */
const moment = z.string().transform((text, context) => {
  const time = parseOccurredAt(text);
  if (time.ok) return time.epochMs;
  context.addIssue({ code: 'custom', ...coded(time.rule, 'time') });
  return z.NEVER;
});

const counted = z.number().int().min(0).max(LARGEST);

export const adjustInput = z
  .strictObject({
    location: locationName.optional(),
    quantity: quantity.refine((value) => value !== 0, coded('must not be 0', 'zero')).optional(),
    counted: counted.optional(),
    reason: reason.optional(),
    occurred_at: moment.optional(),
    preview: z.boolean().default(false),
  })
  .superRefine((input, context) => {
    const wrong = (message: string, code: RefusalCode) =>
      context.addIssue({ code: 'custom', path: ['quantity'], ...coded(message, code) });
    if (input.quantity === undefined && input.counted === undefined) {
      wrong('is required', 'required');
    }
    if (input.quantity !== undefined && input.counted !== undefined) {
      wrong('cannot be combined with counted', 'invalid');
    }
  });

export const transferInput = z.strictObject({
  external_id: identifier.optional(),
  from: locationName,
  to: locationName,
  occurred_at: moment.optional(),
  lines: z
    .array(
      z.strictObject({
        item: itemName,
        quantity: z.number().int().min(1).max(LARGEST),
        reason: reason.optional(),
      })
    )
    .min(1)
    .max(1000),
});

export const stocktakeInput = z.strictObject({
  location: locationName,
  occurred_at: moment.optional(),
  counts: z
    .array(z.strictObject({ item: itemName, quantity: counted, reason: reason.optional() }))
    .min(1)
    .max(1000),
  preview: z.boolean().default(false),
});

/** null: the level goes by its item's low mark again. */
export const updateLevelInput = z.strictObject({
  ...readOnlyKeys('id', 'item_id', 'sku', 'gtin', 'name', 'location', 'quantity', 'opening'),
  ...readOnlyKeys('last_counted_at'),
  low_at: quantity.nullable(),
});

export const searchQuery = z.object({ ...pageQuery, search: z.string().max(256).optional() });

/** Sort keys of the stock grid; a minus before it: the other way round. */
export const GRID_SORTS = ['id', 'sku', 'name', 'total'] as const;

export const gridQuery = searchQuery.extend({
  sort: z
    .string()
    .regex(new RegExp(`^-?(${GRID_SORTS.join('|')})$`), {
      message: `must be one of ${GRID_SORTS.join(', ')}, or one of them after a minus`,
    })
    .default('id'),
  low: flag.optional(),
  negative: flag.optional(),
});

export const itemsQuery = searchQuery.extend({ archived: flag.default(false) });

export const levelsQuery = z.object({
  ...pageQuery,
  sku: z.string().max(256).optional(),
  item: idText('an item').optional(),
  location: z.string().min(1).max(256).optional(),
  search: z.string().max(256).optional(),
});

/** `type`, `reason` and `rest` as a term of the level's explanation has them. */
export const levelMovementsQuery = z.object({
  ...pageQuery,
  type: z.enum(['opening', 'sale', 'refund', 'adjustment', 'transfer', 'count']).optional(),
  reason: z.string().max(1000).optional(),
  rest: flag.optional(),
});

export const rebuildInput = z.strictObject({ mend: z.boolean().default(false) });

export type CreateItem = z.infer<typeof createItemInput>;
export type UpdateItem = z.infer<typeof updateItemInput>;
export type CreateLocation = z.infer<typeof createLocationInput>;
export type UpdateLocation = z.infer<typeof updateLocationInput>;
export type Adjust = z.infer<typeof adjustInput>;
export type TransferInput = z.infer<typeof transferInput>;
export type StocktakeInput = z.infer<typeof stocktakeInput>;
export type UpdateLevel = Pick<z.infer<typeof updateLevelInput>, 'low_at'>;
export type GridQuery = z.infer<typeof gridQuery>;
export type LevelMovementsQuery = z.infer<typeof levelMovementsQuery>;
export type LevelsQuery = z.infer<typeof levelsQuery>;
export type ItemsQuery = z.infer<typeof itemsQuery>;
