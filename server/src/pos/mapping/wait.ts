import type { MappingKind } from '../../../../shared/contracts/pos-mapping';
import { digestOf } from '../../stock/digest';
import { gtinDigest, skuDigest } from '../../stock/items';

/** Something that a record waits for. */
export interface Wait {
  /** What wakes it. */
  digest: string;
  /** `other`: nothing that an owner maps, such as the second name of a line, or a refund's sale. */
  kind: MappingKind | 'other';
  value: string | null;
  /** Its row of the mapping inbox. */
  inbox: string | null;
  pieces: number;
}

/** What an event waits for that hangs on its connection: a location, a sale of its group. */
export const connectionWait = (connection: number): string => digestOf(`connection:${connection}`);

/** One wait a digest: its pieces are those of all lines, and what an owner can map comes first. */
export const joinWaits = (waits: readonly Wait[]): Wait[] => {
  const joined = new Map<string, Wait>();
  for (const wait of waits) {
    const known = joined.get(wait.digest);
    if (!known) joined.set(wait.digest, { ...wait });
    else if (known.kind === 'other') joined.set(wait.digest, { ...wait });
    else known.pieces += wait.pieces;
  }
  return [...joined.values()];
};

/** What a line waits for whose item is not known. */
export const itemWaits = ({ sku, gtin }: { sku: string | null; gtin: string | null }): string[] => [
  ...(sku === null ? [] : [skuDigest(sku)]),
  ...(gtin === null ? [] : [gtinDigest(gtin)]),
];
