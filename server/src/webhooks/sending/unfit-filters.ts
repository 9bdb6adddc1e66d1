import type { Core } from '@strapi/strapi';
import { currentExecutor, table } from '../../database/connection';
import { inRetriedTransaction } from '../../database/retry';
import { documentsOf } from '../../database/tables/internal-types';
import { createTimeSlice } from '../../runtime/event-loop';
import { errorText } from '../../runtime/text';
import { refusalOf, storedFilter } from '../rules/data-filter';
import { UNFIT_FILTER } from '../rules/disabled-because';
import { toWebhook } from '../webhook';
import { forgetSubscriptions } from '../subscriptions/current-subscriptions';
import { WEBHOOK, type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import { announceTurn, publishTurns, type TurnedWebhook } from './switch-off';

/** The column of the reason. */
const LONGEST_REASON = 255;

/** Why the filter of a row may not be used, as a sentence; null where it may. */
const reasonFor = ({ filter: text }: Pick<WebhookRow, 'filter'>): string | null => {
  const filter = storedFilter(text);
  const wrong = filter && refusalOf(filter);
  return wrong ? `${UNFIT_FILTER} ${wrong.message}.`.slice(0, LONGEST_REASON) : null;
};

const switchOff = async (
  strapi: Core.Strapi,
  id: number,
  judged: string | null
): Promise<TurnedWebhook[]> =>
  inRetriedTransaction(strapi, async () => {
    const [row] = (await table(strapi, await currentExecutor(strapi), WEBHOOKS_TABLE)
      .where({ id })
      .forUpdate()) as WebhookRow[];
    // Somebody may have changed or switched off what was judged.
    if (!row?.active || row.filter !== judged) return [];
    const reason = reasonFor(row);
    if (reason === null) return [];
    const changes = { active: false, disabled_reason: reason, disabled_at: Date.now() };
    await documentsOf(strapi, WEBHOOK).update({ documentId: row.document_id, data: changes });
    forgetSubscriptions();
    const turned: TurnedWebhook[] = [
      { turn: 'disabled', webhook: toWebhook({ ...row, ...changes }), reason },
    ];
    await publishTurns(strapi, turned);
    return turned;
  });

/**
 * Switches off active webhooks whose filter may not be used, with the reason: version 0.2 took
 * filters that this one does not, and a node of 0.2 may save one beside this one. At boot, and when
 * an event meets such a filter.
 */
export const switchOffUnfitFilters = async (strapi: Core.Strapi): Promise<void> => {
  const rows = (await table(strapi, await currentExecutor(strapi), WEBHOOKS_TABLE)
    .select('id', 'filter')
    .where({ active: true })
    .whereNotNull('filter')
    .orderBy('id')) as Pick<WebhookRow, 'id' | 'filter'>[];
  const slice = createTimeSlice();
  for (const row of rows) {
    if (slice.isOver()) await slice.next();
    if (reasonFor(row) === null) continue;
    const turned = await switchOff(strapi, Number(row.id), row.filter);
    for (const one of turned) announceTurn(strapi, one);
  }
};

const looking = new WeakMap<Core.Strapi, Promise<void>>();

/** The same beside other work, one look at a time; what goes wrong is tried again by the next event. */
export const switchOffUnfitFiltersLater = (strapi: Core.Strapi): Promise<void> => {
  const running = looking.get(strapi);
  if (running) return running;
  const look = switchOffUnfitFilters(strapi)
    .catch((error: unknown) => {
      strapi.log.error(
        `switchboard: webhooks with an unusable filter could not be switched off: ${errorText(error)}`
      );
    })
    .finally(() => looking.delete(strapi));
  looking.set(strapi, look);
  return look;
};
