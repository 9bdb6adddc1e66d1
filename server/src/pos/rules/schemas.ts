import type { RecordKind } from './states';
import { batchSchema } from './schemas/batch';
import { closingSchema } from './schemas/closing';
import type { SchemaNode } from './schemas/common';
import { inventorySchema } from './schemas/inventory';
import { refundSchema } from './schemas/refund';
import { saleSchema } from './schemas/sale';

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
