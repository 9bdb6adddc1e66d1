import { errorText } from '../../runtime/error-text';
import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { Webhook } from '../../../../shared/contracts/webhooks';
import { getOptions } from '../../config';
import { table } from '../../database/connection';
import { documentsOf } from '../../database/tables/internal-types';
import {
  continueFailing,
  type CountedAttempt,
  type Failing,
  type SwitchOffLimits,
} from '../rules/failing';
import { toWebhook } from '../serialize';
import { WEBHOOK, type WebhookRow, WEBHOOKS_TABLE } from '../tables';

/** An attempt that was recorded, in the order of their ends. */
export interface WebhookAttempt extends CountedAttempt {
  webhookId: number;
}

const byWebhook = (attempts: readonly WebhookAttempt[]): Map<number, CountedAttempt[]> => {
  const groups = new Map<number, CountedAttempt[]>();
  for (const attempt of attempts) {
    const own = groups.get(attempt.webhookId);
    if (own) own.push(attempt);
    else groups.set(attempt.webhookId, [attempt]);
  }
  return groups;
};

const failingOf = (row: WebhookRow): Failing => ({
  consecutiveFailures: Number(row.consecutive_failures ?? 0),
  failedAttempts: Number(row.failed_attempts ?? 0),
  failingSince: row.failing_since === null ? null : Number(row.failing_since),
});

/** One statement, however many webhooks fail. */
const storeFailing = async (
  strapi: Core.Strapi,
  trx: Knex.Transaction,
  counts: readonly (readonly [id: number, failing: Failing])[]
): Promise<void> => {
  const column = (name: string, valueOf: (failing: Failing) => number | null): Knex.Raw =>
    trx.raw(`CASE id ${counts.map(() => 'WHEN ? THEN ?').join(' ')} ELSE ?? END`, [
      ...counts.flatMap(([id, failing]) => [id, valueOf(failing)]),
      name,
    ] as Knex.RawBinding[]);
  await table(strapi, trx, WEBHOOKS_TABLE)
    .whereIn(
      'id',
      counts.map(([id]) => id)
    )
    .update({
      consecutive_failures: column('consecutive_failures', (one) => one.consecutiveFailures),
      failed_attempts: column('failed_attempts', (one) => one.failedAttempts),
      failing_since: column('failing_since', (one) => one.failingSince),
    });
};

/**
 * Goes on counting what fails of each webhook and switches off those that have failed too often or
 * for too long, within the transaction that records the attempts, so each counts exactly once on any
 * number of nodes. An attempt that succeeded writes nothing where nothing had failed before.
 * docs/contract-webhooks.md#switching-off.
 * @returns the webhooks that this call switched off.
 */
export const countAttempts = async (
  strapi: Core.Strapi,
  trx: Knex.Transaction,
  attempts: readonly WebhookAttempt[],
  limits: SwitchOffLimits
): Promise<Webhook[]> => {
  const groups = byWebhook(attempts);
  const fails = (id: number): boolean => groups.get(id)?.some(({ ok }) => !ok) ?? false;
  // Always in the order of ids: two nodes that lock the same webhooks must not wait for each other.
  const ids = [...groups.keys()].sort((a, b) => a - b);
  const well = ids.filter((id) => !fails(id));
  const failing = ids.filter(fails);
  if (well.length > 0) {
    await table(strapi, trx, WEBHOOKS_TABLE)
      .whereIn('id', well)
      .andWhere((any) => {
        any.where('consecutive_failures', '<>', 0).orWhere('failed_attempts', '>', 0);
      })
      .update({ consecutive_failures: 0, failed_attempts: 0, failing_since: null });
  }
  if (failing.length === 0) return [];
  const reading = table(strapi, trx, WEBHOOKS_TABLE).whereIn('id', failing).orderBy('id');
  const rows = (await (strapi.db.dialect.client === 'sqlite'
    ? reading
    : reading.forUpdate())) as WebhookRow[];
  const judged = rows.map((row) => ({
    row,
    ...continueFailing(failingOf(row), groups.get(Number(row.id)) ?? [], limits),
  }));
  if (judged.length === 0) return [];
  await storeFailing(
    strapi,
    trx,
    judged.map(({ row, after }) => [Number(row.id), after] as const)
  );
  const switchedOff: Webhook[] = [];
  for (const { row, after, reason } of judged) {
    if (reason === null || !row.active) continue;
    const changes = { active: false, disabled_reason: reason, disabled_at: Date.now() };
    await documentsOf(strapi, WEBHOOK).update({ documentId: row.document_id, data: changes });
    const consecutive = { consecutive_failures: after.consecutiveFailures };
    switchedOff.push(toWebhook({ ...row, ...consecutive, ...changes }));
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
