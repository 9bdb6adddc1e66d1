import type { Webhook } from '../../../shared/contracts/webhooks';
import { isoTime, logFailure } from '../runtime/text';
import type { AlarmEvent, WebhookAlarm } from './catalogue';
import { documentsOf } from '../database/tables/internal-types';
import { getPublisher } from './publish';
import { WEBHOOK, type WebhookRow } from './tables';
import { toWebhook } from './webhook';
import type { App } from '../app';

interface EmailService {
  send(message: { to: string; subject: string; text: string }): Promise<void>;
}

/** Mails `webhooks.notifyEmail`, if set; neither waits nor throws. `about`, such as `a webhook`, is for the log. */
export const mailOwner = (
  app: App,
  { about, subject, text }: Record<'about' | 'subject' | 'text', string>
): void => {
  const to = app.options.webhooks.notifyEmail;
  if (!to) return;
  const email = app.strapi.plugin('email')?.service('email') as EmailService | undefined;
  const failed = logFailure(app, `the mail about ${about} could not be sent`);
  email?.send({ to, subject, text }).catch(failed);
};

export interface Alarm {
  kind: WebhookAlarm;
  webhook: Webhook;
  reason: string;
}

interface JudgedAttempt {
  ok: boolean;
  /** When it ended, epoch milliseconds. */
  at: number;
  /** Why it failed; null: it did not. */
  cause: string | null;
  /** It is an alarm about another webhook, such as `webhook.failing`. */
  isAlarm: boolean;
}

/** If only alarms succeed at a receiver, it is not healthy before this: two failing ones could alarm for ever. */
const ALARM_MS = 600_000;

/** The alarm about a webhook after these attempts, once per outage, by the transaction that has locked the row. */
export const alarmOf = (
  alarmedAt: number | null,
  unwellSince: number | null,
  attempts: readonly JudgedAttempt[]
): Pick<Alarm, 'kind' | 'reason'> | null => {
  if (attempts.length === 0) return null;
  if (unwellSince !== null) {
    if (alarmedAt !== null) return null;
    const cause = attempts.findLast(({ ok }) => !ok)?.cause ?? 'unknown';
    const reason = `Attempts have failed since ${isoTime(unwellSince)}: ${cause}.`;
    return { kind: 'failing', reason };
  }
  const isOver = attempts.some(
    ({ ok, isAlarm, at }) => ok && (!isAlarm || at - Number(alarmedAt) >= ALARM_MS)
  );
  return alarmedAt !== null && isOver
    ? { kind: 'recovered', reason: 'Attempts succeed again.' }
    : null;
};

const SAID: Readonly<Record<WebhookAlarm, Record<'what' | 'then', string>>> = {
  failing: { what: 'fails', then: 'Failed deliveries are retried on schedule.' },
  recovered: { what: 'works again', then: 'Waiting deliveries are sent on schedule.' },
  disabled: {
    what: 'was switched off',
    then: 'Nothing more is sent to it until you switch it on again.',
  },
};

/** Switches off a webhook, in the current transaction. @returns the alarm about it */
export const switchOff = async (app: App, row: WebhookRow, reason: string): Promise<Alarm> => {
  const changes = { active: false, disabled_reason: reason, disabled_at: Date.now() };
  await documentsOf(app.strapi, WEBHOOK).update({ documentId: row.document_id, data: changes });
  return { kind: 'disabled', webhook: toWebhook({ ...row, ...changes }), reason };
};

/** Publishes alarms to other webhooks in the transaction that found them: once. docs/contract-webhooks.md#being-told */
export const publishAlarms = async (app: App, alarms: readonly Alarm[]): Promise<void> => {
  await getPublisher(app).publish(
    alarms.map(({ kind, webhook: { id, name, url }, reason }) => ({
      event: `webhook.${kind}` satisfies AlarmEvent,
      data: { webhook: { id, name, url }, reason },
      exceptWebhook: id,
    }))
  );
};

/** Tells the owner: the log, the host's event hub, and by e-mail where an address is set. */
export const announceAlarm = (app: App, { kind, webhook, reason }: Alarm): void => {
  const level = kind === 'recovered' ? 'info' : 'warn';
  app.log[level](`switchboard: webhook ${webhook.id} (${webhook.name}): ${reason}`);
  const hubEvent = `switchboard.webhook.${kind}`;
  const failed = logFailure(app, `a listener of ${hubEvent} failed`);
  app.strapi.eventHub.emit(hubEvent, { webhook }).catch(failed);
  const { what, then } = SAID[kind];
  const subject = `The webhook "${webhook.name}" ${what}`;
  const text = `${reason}\n\nName: ${webhook.name}\nAddress: ${webhook.url}\n\n${then}`;
  mailOwner(app, { about: 'a webhook', subject, text });
};
