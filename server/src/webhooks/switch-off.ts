import { errorText } from '../error-text';
import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { Webhook } from '../../../shared/contracts/webhooks';
import { getOptions } from '../config';
import { table } from '../database/connection';
import { continueRun } from './rules/failure-run';
import { toWebhook } from './serialize';
import { type WebhookRow, WEBHOOKS_TABLE } from './tables';

/** A delivery that ended, in the order of their ends. */
export interface Ending {
  webhookId: number;
  outcome: 'sent' | 'failed';
}

const byWebhook = (endings: readonly Ending[]): Map<number, Ending['outcome'][]> => {
  const groups = new Map<number, Ending['outcome'][]>();
  for (const { webhookId, outcome } of endings) {
    const outcomes = groups.get(webhookId) ?? [];
    outcomes.push(outcome);
    groups.set(webhookId, outcomes);
  }
  return groups;
};

/**
 * Continues each webhook's run of failures and switches off those that reach the threshold, within
 * the transaction that records the endings, so each ending counts exactly once on any number of
 * nodes. Specification 1, Webhook activity.
 * @returns the webhooks that this call switched off.
 */
export const countEndings = async (
  strapi: Core.Strapi,
  trx: Knex.Transaction,
  endings: readonly Ending[],
  threshold: number
): Promise<Webhook[]> => {
  const groups = byWebhook(endings);
  const onlySent = [...groups].filter(([, outcomes]) => !outcomes.includes('failed'));
  const withFailures = [...groups].filter(([, outcomes]) => outcomes.includes('failed'));
  const switchedOff: Webhook[] = [];
  if (onlySent.length > 0) {
    await table(strapi, trx, WEBHOOKS_TABLE)
      .whereIn(
        'id',
        onlySent.map(([id]) => id).sort((a, b) => a - b)
      )
      .andWhere('consecutive_failures', '<>', 0)
      .update({ consecutive_failures: 0 });
  }
  // Always in the order of ids: two nodes that lock the same webhooks must not wait for each other.
  for (const [id, outcomes] of withFailures.sort((a, b) => a[0] - b[0])) {
    const locked = table(strapi, trx, WEBHOOKS_TABLE).where({ id }).first();
    const row = (await (strapi.db.dialect.client === 'sqlite' ? locked : locked.forUpdate())) as
      WebhookRow | undefined;
    if (!row) continue;
    const run = continueRun(Number(row.consecutive_failures), outcomes, threshold);
    const trips = run.tripped && Boolean(row.active);
    const changes = {
      consecutive_failures: run.count,
      ...(trips && {
        active: false,
        disabled_reason: `Switched off after ${threshold} failed deliveries in a row.`,
        disabled_at: Date.now(),
      }),
    };
    await table(strapi, trx, WEBHOOKS_TABLE).where({ id }).update(changes);
    if (trips) switchedOff.push(toWebhook({ ...row, ...changes } as WebhookRow));
  }
  return switchedOff;
};

interface EmailService {
  send(message: { to: string; subject: string; text: string }): Promise<void>;
}

/** Tells the owner: the log, the host's event hub, and by e-mail where an address is set. */
export const announceSwitchOff = (strapi: Core.Strapi, webhook: Webhook): void => {
  strapi.log.warn(
    `switchboard: webhook ${webhook.id} (${webhook.name}): ${webhook.disabled_reason}`
  );
  strapi.eventHub.emit('switchboard.webhook.disabled', { webhook }).catch((error: unknown) => {
    strapi.log.error(
      `switchboard: a listener of switchboard.webhook.disabled failed: ${errorText(error)}`
    );
  });
  const to = getOptions(strapi).webhooks.notifyEmail;
  if (!to) return;
  const email = strapi.plugin('email')?.service('email') as EmailService | undefined;
  const text = `${webhook.disabled_reason}\n\nName: ${webhook.name}\nAddress: ${webhook.url}\n\nNothing more is sent to it until somebody switches it on again.`;
  email
    ?.send({ to, subject: `The webhook "${webhook.name}" was switched off`, text })
    .catch((error: unknown) => {
      strapi.log.error(`switchboard: the switch-off mail could not be sent: ${errorText(error)}`);
    });
};
