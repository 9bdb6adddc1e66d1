import { type AcceptedCount, withdrawCounts, withdrawTrialCounts } from '../../stock/counts';
import type { Place } from '../../stock/ledger';
import type { ProcessingContext } from '../processing/processing-context';
import { type PosEventRow, POS_EVENTS_TABLE } from '../tables';
import type { App } from '../../app';
import type { Tx } from '../../database/db';

/** For each line of a stocktake what it counts; null where nobody can say yet. */
export type CountedPlaces = readonly (Place | null)[];

type Stored = ([item: number, location: number] | null)[];

/** As an event's `counted_places`; null where no line counts anything yet. */
export const writePlaces = (places: CountedPlaces): string | null =>
  places.every((place) => place === null)
    ? null
    : JSON.stringify(places.map((place) => place && [place.item, place.location]));

const readPlaces = (text: string | null): CountedPlaces =>
  (JSON.parse(text ?? '[]') as Stored).map((place) =>
    place === null ? null : { item: place[0], location: place[1] }
  );

const isStocktake = ({ record }: ProcessingContext): boolean =>
  record.kind === 'inventory' && record.mode === 'absolute';

/** What a stocktake's lines are of now; null for all other records. */
export const placesOf = (work: ProcessingContext): string | null => {
  if (!isStocktake(work)) return null;
  const { items, locationId } = work;
  return writePlaces(
    items.map((item) =>
      item === null || locationId === null ? null : { item, location: locationId }
    )
  );
};

const QUEUED = ['pending', 'failed'] as const;

/** Live counts that were accepted and are not in the ledger yet. */
const queuedCounts = async (tx: Tx, except: readonly number[]): Promise<AcceptedCount[]> => {
  const query = tx
    .table(POS_EVENTS_TABLE)
    .select('id', 'effective_at', 'counted_places')
    .whereIn('state', QUEUED)
    .where({ kind: 'inventory', mode: 'live' })
    .whereNotNull('counted_places');
  // One that was accepted while the levels were waited for, too.
  const rows = (await tx.latest(query)) as Pick<
    PosEventRow,
    'id' | 'effective_at' | 'counted_places'
  >[];
  const own = new Set(except);
  return rows
    .filter(({ id }) => !own.has(Number(id)))
    .flatMap(({ effective_at: at, counted_places: text }) =>
      readPlaces(text).flatMap((place) => (place ? [{ ...place, at: Number(at) }] : []))
    );
};

/** Lines that are of something else than they were accepted or placed as, with what that was. */
const withdrawnBy = (work: ProcessingContext): AcceptedCount[] => {
  const { items, locationId, row } = work;
  return readPlaces(row.counted_places).flatMap((before, line) => {
    if (before === null) return [];
    const isSame = items[line] === before.item && locationId === before.location;
    return isSame ? [] : [{ ...before, at: Number(row.effective_at) }];
  });
};

/**
 * Stocktakes of the batch whose lines were accepted by a mapping that holds no more: they make no other
 * count stale. For the time after the lines were resolved, and before they are put into the ledger.
 */
export const withdrawMisplaced = async (
  tx: Tx,
  app: App,
  batch: readonly ProcessingContext[]
): Promise<void> => {
  const counts = batch.filter(isStocktake);
  if (counts.length === 0) return;
  const of = (mode: PosEventRow['mode']) =>
    counts.filter(({ row }) => row.mode === mode).flatMap(withdrawnBy);
  const ids = batch.map(({ id }) => id);
  await withdrawCounts(tx, app, of('live'), () => queuedCounts(tx, ids));
  await withdrawTrialCounts(tx, of('test'));
};
