import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020.js';

import { RECORD_SCHEMAS } from '../schemas';
import type { EventKind, InventoryMode } from '../states';
import type { JsonObject } from '../strict-json';
import { closingSchema } from './closing';

/** The bodies as the schemas let them through. */
export interface WireLine {
  sku?: string;
  gtin?: string;
  quantity: number;
  unit_price?: number;
}
export interface WireBody {
  external_id: string;
  occurred_at: string;
  location_ref?: string;
}
interface WireSale extends WireBody {
  currency: string;
  total: number;
  line_items: WireLine[];
  customer?: JsonObject;
  meta?: JsonObject;
}
interface WireRefund extends WireBody {
  currency?: unknown;
  total?: unknown;
  sale_external_id: string;
  reason?: string;
  restock?: boolean;
  line_items?: WireLine[];
}
export interface WireCount {
  sku: string;
  quantity: number;
  reason?: string;
}
interface WireInventory extends WireBody {
  mode: InventoryMode;
  counts: WireCount[];
}

export interface WireClosing extends WireBody {
  from: string;
  to: string;
  totals: {
    currency: string;
    sales: { count: number; total: number };
    refunds: { count: number; total: number };
  }[];
  external_ids?: string[];
}

const ajv = new Ajv2020({ strict: true, allErrors: false, verbose: true });

/** Compiled from the published documents themselves; each tells what a body is when it passes. */
export const VALIDATORS = {
  sale: ajv.compile<WireSale>(RECORD_SCHEMAS.sale),
  refund: ajv.compile<WireRefund>(RECORD_SCHEMAS.refund),
  inventory: ajv.compile<WireInventory>(RECORD_SCHEMAS.inventory),
  closing: ajv.compile<WireClosing>(closingSchema),
} as const satisfies Record<EventKind, ValidateFunction<WireBody>>;
