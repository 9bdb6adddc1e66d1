import type { RecordKind } from './pos';
import type { LocationSummary } from './stock';

/** Types of `/switchboard/{mapping-inbox,mappings}…`; docs/tills.md. Times are ISO 8601. */

export const MAPPING_KINDS = ['sku', 'gtin', 'location_ref'] as const;
export type MappingKind = (typeof MAPPING_KINDS)[number];

/** One row of `GET /switchboard/mapping-inbox`: a value that tills sent and the site does not know. */
export interface UnknownValue {
  kind: MappingKind;
  value: string;
  /** The connection of the location; only with `location_ref`. */
  connection?: { id: number; name: string };
  /** Records with lines that wait for it. */
  records: number;
  /** How many of them are of which kind. */
  by_kind: Record<RecordKind, number>;
  /** Pieces on these lines, whatever their sign. */
  pieces: number;
  /** When the first and the last of the records were received. */
  first_at: string;
  last_at: string;
}

/** The target of a value. `create: true` makes an item of that SKU (or SKU and GTIN). */
export type MappingTarget =
  | { item: number | string }
  | { create: true | { sku?: string; gtin?: string | null; name?: string | null; low_at?: number } }
  | { location: number | string }
  | { ignore: true };

/** Body of `POST /switchboard/mapping-inbox/resolve`; docs/shop.md#unmapped-products-and-locations. */
export interface ResolveInput {
  kind: MappingKind;
  value: string;
  /** A connection's id; required with `location_ref`. */
  connection?: number;
  to: MappingTarget;
  /** Says what it would reach, and stores nothing. */
  preview?: boolean;
}

export interface Resolved {
  /** The mapping's id, for undoing it; null in a preview. */
  id: number | null;
  records: number;
  pieces: number;
}

/** One row of `GET /switchboard/mapping-inbox/resolved`. */
export interface Mapping {
  id: number;
  kind: MappingKind;
  value: string;
  connection: { id: number; name: string } | null;
  to:
    | { item: { id: number; sku: string; name: string | null }; created: boolean }
    | { location: LocationSummary }
    | { ignore: true };
  made_by: string | null;
  created_at: string;
}
