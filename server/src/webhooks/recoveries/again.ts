import { QUEUE_STATES } from '../../queue/queue';
import {
  ATTEMPTS_TABLE,
  DELIVERIES_TABLE,
  DELIVERY_QUEUE_TABLE,
  type DeliveryRow,
} from '../tables';
import { getDeliveryChanges } from '../deliveries/changes';
import { getDeliveryStore, PLACED_COLUMNS, type PlacedRow } from '../deliveries/store';
import type { App } from '../../app';
import type { Db, Tx } from '../../database/db';

type Row = PlacedRow & Pick<DeliveryRow, 'site_instance'>;

/**
 * Makes failing and failed deliveries due now. Failed ones restart their schedule; those under way count as due.
 * @param isHeld whether an event may not be sent now
 * @returns the attempts so far of each that is due or under way, by row id; others are omitted
 */
export const sendAgain = async (
  tx: Tx,
  app: App,
  ids: readonly number[],
  isHeld: (event: string) => boolean
): Promise<Map<number, number>> => {
  const store = getDeliveryStore(app);
  const changes = getDeliveryChanges(app);
  const places = await store.queue.lock(tx, ids);
  const found = (await store
    .rows(tx)
    .select(...PLACED_COLUMNS, 'site_instance')
    .whereIn('id', [...ids])
    .orderBy('id')
    .forUpdate()) as Row[];
  const now = store.now();
  const tries = new Map<number, number>();
  const failed: Row[] = [];
  const advanced: number[] = [];
  for (const row of found) {
    const id = Number(row.id);
    const place = places.get(id);
    if (row.status === 'sent' || row.is_test || app.site.isForeign(row)) continue;
    if (place?.state === 'parked' || isHeld(row.event)) continue;
    if (row.status === 'pending' && !place) continue;
    if (!place?.isHeld) {
      if (row.status === 'failed') failed.push(row);
      else if (place && place.dueAt > now) advanced.push(id);
    }
    tries.set(id, Number(row.tries));
  }
  await changes.restart(tx, failed);
  await changes.advance(tx, advanced);
  return tries;
};

/** The current state of deliveries that were to be sent again, by the ids of their rows; in one statement. */
export const readAgain = async (db: Db, ids: readonly number[]) => {
  const found = (await db
    .table(`${DELIVERIES_TABLE} as d`)
    .leftJoin(`${DELIVERY_QUEUE_TABLE} as q`, 'q.id', 'd.id')
    .select('d.id', 'd.status', 'd.tries', 'q.state')
    .whereIn('d.id', [...ids])) as (Pick<DeliveryRow, 'id' | 'status' | 'tries'> & {
    state: number | null;
  })[];
  return new Map(
    found.map(({ id, status, tries, state }) => [
      Number(id),
      {
        status,
        tries: Number(tries),
        isDue: state !== null && state !== QUEUE_STATES.ended,
        /** It is not due: it waits for an earlier delivery of its record, or for a module. */
        isHeld: state === QUEUE_STATES.blocked || state === QUEUE_STATES.parked,
      },
    ])
  );
};

/** Attempts of deliveries by row id, and whether each in the log succeeded, oldest first; as of one moment. */
export const readEnds = async (db: Db, ids: readonly number[]) => {
  const several = new Map<number, { tries: number; ends: boolean[] }>();
  if (ids.length === 0) return several;
  const found = (await db
    .table(`${DELIVERIES_TABLE} as d`)
    .join(`${ATTEMPTS_TABLE} as a`, 'a.delivery_id', 'd.id')
    .select('d.id', 'd.tries', 'a.error')
    .whereIn('d.id', [...ids])
    .orderBy('a.id')) as { id: number; tries: number; error: string | null }[];
  for (const { id, tries, error } of found) {
    const one = several.get(Number(id)) ?? { tries: Number(tries), ends: [] };
    one.ends.push(error === null);
    several.set(Number(id), one);
  }
  return several;
};
