import type { Webhook } from '../../../shared/contracts/webhooks';
import { errorText } from '../runtime/text';
import type { AlarmEvent, WebhookAlarm } from './catalogue';
import { getPublisher } from './publish';
import type { App } from '../app';

interface EmailService {
  send(message: { to: string; subject: string; text: string }): Promise<void>;
}

interface OwnersMail {
  /** The subject for the log if the mail cannot be sent: `a webhook`. */
  about: string;
  subject: string;
  text: string;
}

/**
 * Writes to the address of the option `webhooks.notifyEmail`, where there is one; does not wait for it
 * and never throws.
 */
export const mailOwner = (app: App, { about, subject, text }: OwnersMail): void => {
  const to = app.options.webhooks.notifyEmail;
  if (!to) return;
  const email = app.strapi.plugin('email')?.service('email') as EmailService | undefined;
  email?.send({ to, subject, text }).catch((error: unknown) => {
    app.log.error(`switchboard: the mail about ${about} could not be sent: ${errorText(error)}`);
  });
};

/** An alarm about a webhook. */
export interface Alarm {
  kind: WebhookAlarm;
  webhook: Webhook;
  reason: string;
}

const SAID: Readonly<Record<WebhookAlarm, { subject: (name: string) => string; then: string }>> = {
  failing: {
    subject: (name) => `The webhook "${name}" fails`,
    then: 'What fails is tried again by the schedule.',
  },
  recovered: {
    subject: (name) => `The webhook "${name}" works again`,
    then: 'What had failed is sent by its schedule.',
  },
  disabled: {
    subject: (name) => `The webhook "${name}" was switched off`,
    then: 'Nothing more is sent to it until somebody switches it on again.',
  },
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
  const { subject, then } = SAID[kind];
  const text = `${reason}\n\nName: ${webhook.name}\nAddress: ${webhook.url}\n\n${then}`;
  mailOwner(app, { about: 'a webhook', subject: subject(webhook.name), text });
};
