import type { RecordKind } from '../states';
import { batchSchema } from './batch';
import { closingSchema } from './closing';
import type { SchemaNode } from './common';
import { inventorySchema } from './inventory';
import { refundSchema } from './refund';
import { saleSchema } from './sale';

/** The published documents, by kind; the very objects that the validators are compiled from. */
export const RECORD_SCHEMAS = {
  sale: saleSchema,
  refund: refundSchema,
  inventory: inventorySchema,
} as const satisfies Record<RecordKind, SchemaNode>;

/** Every document under `/schema`, by the last part of its path. */
export const PUBLISHED_SCHEMAS = {
  ...RECORD_SCHEMAS,
  closing: closingSchema,
  batch: batchSchema,
} as const;
