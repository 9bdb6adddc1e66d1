import type { Core } from '@strapi/strapi';
import { currentExecutor, type Executor, table } from '../../database/connection';
import { nextTurn } from '../../runtime/event-loop';
import { readNewestTried } from '../delivering/store/tried-deliveries';
import { continueSpell, type Spell } from '../rules/health';
import { type WebhookRow, WEBHOOKS_TABLE } from '../tables';

/** Deliveries whose attempts are looked at, of the newest of a webhook. */
const LOOKED_AT = { among: 1000, limit: 50 };

/** How a webhook did by its latest attempts, whichever of its deliveries they were of. */
const spellOfLog = async (
  strapi: Core.Strapi,
  executor: Executor,
  webhook: number
): Promise<Spell> => {
  const deliveries = await readNewestTried(strapi, executor, webhook, LOOKED_AT);
  const attempts = deliveries
    .filter(({ isForeign }) => !isForeign)
    .flatMap((delivery) => delivery.attempts)
    .sort((a, b) => a.at - b.at);
  return continueSpell({ attempted: false, unwellSince: null }, attempts);
};

/**
 * Says of webhooks of earlier versions how their last attempts went; later attempts keep it. What a
 * webhook's row knows already is left alone, so it may be done again, and by two nodes at once.
 */
export const settleFirstHealth = async (strapi: Core.Strapi): Promise<void> => {
  const executor = await currentExecutor(strapi);
  const webhooks = () => table(strapi, executor, WEBHOOKS_TABLE);
  const unknown = (await webhooks()
    .select('id', 'failing_since', 'attempted')
    .orderBy('id')) as Pick<WebhookRow, 'id' | 'failing_since' | 'attempted'>[];
  for (const { id, failing_since: since, attempted: known } of unknown) {
    if (known) continue;
    const { attempted, unwellSince } = await spellOfLog(strapi, executor, Number(id));
    // The log that was looked at may not reach back to the first failure; the row may.
    const first = unwellSince === null ? null : Math.min(unwellSince, Number(since ?? unwellSince));
    if (attempted) {
      await webhooks()
        .where({ id })
        .whereNull('attempted')
        .update({ attempted, unwell_since: first });
    }
    await nextTurn();
  }
};
