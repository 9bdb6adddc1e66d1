import { RECORD_KINDS } from '../../../../shared/contracts/pos';
import type { UnknownValue } from '../../../../shared/contracts/pos-mapping';
import type { Translate } from '../../utils/text';

/** The records that wait for a value, by kind: "2 sales, 1 refund, 3 pieces". */
export const waitingRecords = (
  { by_kind: records, pieces }: Pick<UnknownValue, 'by_kind' | 'pieces'>,
  text: Translate
): string =>
  [
    ...RECORD_KINDS.filter((kind) => records[kind] > 0).map((kind) =>
      text(`mapping.waiting.${kind}`, { n: records[kind] })
    ),
    text('mapping.waiting.pieces', { n: pieces }),
  ].join(', ');
