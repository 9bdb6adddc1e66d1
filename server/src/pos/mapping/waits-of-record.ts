import { gtinDigest } from '../../stock/items';
import { type ProcessingContext, unknownLines } from '../processing/processing-context';
import { lineNames, quantityOf } from '../rules/record-lines';
import { mappingDigest } from './mappings';
import { connectionWait, type Wait } from './wait';

const other = (digest: string): Wait => ({
  digest,
  kind: 'other',
  value: null,
  inbox: null,
  pieces: 0,
});

const named = (kind: 'sku' | 'gtin', value: string, pieces: number): Wait => {
  const digest = mappingDigest(kind, value, null);
  return { digest, kind, value, inbox: digest, pieces };
};

/** What the lines of a record wait for whose items are not known; a line is in one row of the inbox. */
export const itemWaitsOf = (work: ProcessingContext): Wait[] => {
  const names = lineNames(work.record);
  return unknownLines(work).flatMap((line): Wait[] => {
    const { sku = null, gtin = null } = names[line] ?? {};
    const pieces = Math.abs(quantityOf(work.record, line));
    if (sku === null) return gtin === null ? [] : [named('gtin', gtin, pieces)];
    return [named('sku', sku, pieces), ...(gtin === null ? [] : [other(gtinDigest(gtin))])];
  });
};

/** What a record waits for whose location is not known. */
export const locationWaitOf = ({ record, connection, items, ignored }: ProcessingContext): Wait => {
  const id = Number(connection.id);
  const { locationRef } = record;
  if (locationRef === null) return other(connectionWait(id));
  const pieces = items.reduce(
    (sum: number, _item, line) =>
      ignored.includes(line) ? sum : sum + Math.abs(quantityOf(record, line)),
    0
  );
  const inbox = mappingDigest('location_ref', locationRef, id);
  return { digest: connectionWait(id), kind: 'location_ref', value: locationRef, inbox, pieces };
};

/** What a refund waits for whose sale, or whose location, its connection or its group may still have. */
export const saleWaitOf = ({ connection }: ProcessingContext): Wait =>
  other(connectionWait(Number(connection.id)));
