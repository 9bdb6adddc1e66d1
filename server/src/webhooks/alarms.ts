import type { Webhook } from '../../../shared/contracts/webhooks';
import { errorText, isoTime } from '../runtime/text';
import type { AlarmEvent, WebhookAlarm } from './catalogue';
import { documentsOf } from '../database/tables/internal-types';
import { getPublisher } from './publish';
import { WEBHOOK, type WebhookRow } from './tables';
import { toWebhook } from './webhook';
import type { App } from '../app';

interface EmailService {
  send(message: { to: string; subject: string; text: string }): Promise<void>;
}

/**
 * Writes to `webhooks.notifyEmail`, if it is set; does not wait for it and never throws.
 * @param mail `about`, such as `a webhook`, is for the log if it cannot be sent
 */
export const mailOwner = (
  app: App,
  { about, subject, text }: Record<'about' | 'subject' | 'text', string>
): void => {
  const to = app.options.webhooks.notifyEmail;
  if (!to) return;
  const email = app.strapi.plugin('email')?.service('email') as EmailService | undefined;
  email?.send({ to, subject, text }).catch((error: unknown) => {
    app.log.error(`switchboard: the mail about ${about} could not be sent: ${errorText(error)}`);
  });
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

/**
 * A receiver to which nothing but alarms succeeds is not taken for well before that: else two that fail
 * now and then would tell each other of it for ever.
 */
const ALARM_MS = 600_000;

/**
 * The alarm about a webhook after these attempts. Once a spell: the transaction that has locked the row
 * and finds it so reports it.
 */
export const alarmOf = (
  alarmedAt: number | null,
  unwellSince: number | null,
  attempts: readonly JudgedAttempt[]
): Pick<Alarm, 'kind' | 'reason'> | null => {
  if (attempts.length === 0) return null;
  if (unwellSince !== null) {
    if (alarmedAt !== null) return null;
    const cause = attempts.findLast(({ ok }) => !ok)?.cause ?? 'unknown';
    const reason = `Attempts fail since ${isoTime(unwellSince)}: ${cause}.`;
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
  failing: { what: 'fails', then: 'What fails is tried again by the schedule.' },
  recovered: { what: 'works again', then: 'What had failed is sent by its schedule.' },
  disabled: {
    what: 'was switched off',
    then: 'Nothing more is sent to it until somebody switches it on again.',
  },
};

/** Switches off a webhook, in the current transaction. @returns the alarm about it */
export const switchOff = async (app: App, row: WebhookRow, reason: string): Promise<Alarm> => {
  const changes = { active: false, disabled_reason: reason, disabled_at: Date.now() };
  await documentsOf(app.strapi, WEBHOOK).update({ documentId: row.document_id, data: changes });
  return { kind: 'disabled', webhook: toWebhook({ ...row, ...changes }), reason };
};

/**
 * Tells other webhooks, in the transaction in which it was found: so once, on any number of nodes.
 * docs/contract-webhooks.md#being-told
 */
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
  app.strapi.eventHub.emit(hubEvent, { webhook }).catch((error: unknown) => {
    app.log.error(`switchboard: a listener of ${hubEvent} failed: ${errorText(error)}`);
  });
  const { what, then } = SAID[kind];
  const subject = `The webhook "${webhook.name}" ${what}`;
  const text = `${reason}\n\nName: ${webhook.name}\nAddress: ${webhook.url}\n\n${then}`;
  mailOwner(app, { about: 'a webhook', subject, text });
};
