import type { HealthCounts } from '../../../shared/contracts/overview';

const KINDS = ['failed', 'failing', 'waiting', 'sent'] as const;

interface Piece {
  kind: (typeof KINDS)[number] | 'none';
  y: number;
  height: number;
}

/** Four numbers that add up to all: pending ones are told apart by whether they were tried. */
export const partsOf = ({ pending, failing, sent, failed }: HealthCounts) => ({
  sent,
  failed,
  failing,
  waiting: pending - failing,
});

/** The pieces of one bar, from the bottom up. A few failures among many successes still show. */
export const barPieces = (counts: HealthCounts, most: number, height: number): Piece[] => {
  const parts = partsOf(counts);
  const total = counts.failed + counts.pending + counts.sent;
  if (total === 0) return [{ kind: 'none', y: height - 1, height: 1 }];
  let top = height;
  return KINDS.filter((kind) => parts[kind] > 0).map((kind) => {
    const size = Math.max(2, (parts[kind] / most) * (height - 4));
    top -= size;
    return { kind, y: top, height: size };
  });
};
