import { documentsOf } from '../database/tables/internal-types';
import { TimeSlice } from '../runtime/event-loop';
import { errorText } from '../runtime/text';
import { refusalOf, storedFilter } from './rules/data-filter';
import { forgetSubscriptions } from './subscriptions';
import { WEBHOOK, type WebhookRow, WEBHOOKS_TABLE } from './tables';
import { announceAlarm, publishAlarms, type Alarm } from './alarms';
import { toWebhook, UNFIT_FILTER } from './webhook';
import type { App, Slot } from '../app';

/** The column of the reason. */
const LONGEST_REASON = 255;

/** Why the filter of a row may not be used, as a sentence; null if it may. */
const reasonFor = ({ filter: text }: Pick<WebhookRow, 'filter'>): string | null => {
  const filter = storedFilter(text);
  const wrong = filter && refusalOf(filter);
  return wrong ? `${UNFIT_FILTER} ${wrong.message}.`.slice(0, LONGEST_REASON) : null;
};

const switchOff = async (app: App, id: number, judged: string | null): Promise<Alarm[]> =>
  app.db.retrying(async () => {
    const db = await app.db.current();
    const [row] = (await db.table(WEBHOOKS_TABLE).where({ id }).forUpdate()) as WebhookRow[];
    // Somebody may have changed or switched off what was judged.
    if (!row?.active || row.filter !== judged) return [];
    const reason = reasonFor(row);
    if (reason === null) return [];
    const changes = { active: false, disabled_reason: reason, disabled_at: Date.now() };
    await documentsOf(app.strapi, WEBHOOK).update({ documentId: row.document_id, data: changes });
    forgetSubscriptions();
    const alarms: Alarm[] = [
      { kind: 'disabled', webhook: toWebhook({ ...row, ...changes }), reason },
    ];
    await publishAlarms(app, alarms);
    return alarms;
  });

/**
 * Switches off active webhooks whose filter may not be used, with the reason: version 0.2 took filters
 * that this one does not, and a node of 0.2 may save one while this one runs. At boot, and when an event
 * meets such a filter.
 */
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
    const alarms = await switchOff(app, Number(row.id), row.filter);
    for (const one of alarms) announceAlarm(app, one);
  }
};

const looking = (): Slot<Promise<void>> => ({});

/** Switches them off in the background, one look at a time; a failure is tried again by the next event. */
export const switchOffUnfitFiltersLater = (app: App): Promise<void> => {
  const running = app.part(looking).value;
  if (running) return running;
  const look = switchOffUnfitFilters(app)
    .catch((error: unknown) => {
      app.log.error(
        `switchboard: webhooks with an unusable filter could not be switched off: ${errorText(error)}`
      );
    })
    .finally(() => delete app.part(looking).value);
  app.part(looking).value = look;
  return look;
};
