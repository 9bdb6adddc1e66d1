import { TimeSlice } from '../runtime/event-loop';
import { logFailure } from '../runtime/text';
import { refusalOf, storedFilter } from './rules/data-filter';
import { type WebhookRow, WEBHOOKS_TABLE } from './tables';
import { type Alarm, announceAlarm, publishAlarms, switchOff } from './alarms';
import { UNFIT_FILTER } from './webhook';
import type { App, Slot } from '../app';

const LONGEST_REASON = 255;

/** Why the filter of a row may not be used, as a sentence; null if it may. */
const reasonFor = ({ filter: text }: Pick<WebhookRow, 'filter'>): string | null => {
  const filter = storedFilter(text);
  const wrong = filter && refusalOf(filter);
  return wrong ? `${UNFIT_FILTER} ${wrong.message}.`.slice(0, LONGEST_REASON) : null;
};

const switchOffUnfit = async (app: App, id: number, judged: string | null): Promise<Alarm | null> =>
  app.db.retrying(async (tx) => {
    const [row] = (await tx.table(WEBHOOKS_TABLE).where({ id }).forUpdate()) as WebhookRow[];
    // The webhook may have been changed or deactivated since the check.
    if (!row?.active || row.filter !== judged) return null;
    const reason = reasonFor(row);
    if (reason === null) return null;
    const alarm = await switchOff(app, row, reason);
    await publishAlarms(app, [alarm]);
    return alarm;
  });

/** Deactivates webhooks with unusable filters, which nodes of 0.2 may save. At boot, and when an event meets one. */
export const switchOffUnfitFilters = async (app: App): Promise<void> => {
  const db = await app.db.current();
  const rows = (await db
    .table(WEBHOOKS_TABLE)
    .select('id', 'filter')
    .where({ active: true })
    .whereNotNull('filter')
    .orderBy('id')) as Pick<WebhookRow, 'id' | 'filter'>[];
  const slice = new TimeSlice();
  for (const row of rows) {
    if (slice.isOver()) await slice.next();
    if (reasonFor(row) === null) continue;
    const alarm = await switchOffUnfit(app, Number(row.id), row.filter);
    if (alarm) announceAlarm(app, alarm);
  }
};

const looking = (): Slot<Promise<void>> => ({});

/** Switches them off in the background, one look at a time; a failure is tried again by the next event. */
export const switchOffUnfitFiltersLater = (app: App): Promise<void> => {
  const slot = app.part(looking);
  slot.value ??= switchOffUnfitFilters(app)
    .catch(logFailure(app, 'webhooks with an unusable filter could not be switched off'))
    .finally(() => delete slot.value);
  return slot.value;
};
