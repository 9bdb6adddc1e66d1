import { errors, z } from '@strapi/utils';
import {
  type Delivery,
  DELIVERY_STATES,
  DELIVERY_STATUSES,
  HEALTH_STATES,
} from '../../../../shared/contracts/webhooks';
import { foreignInput, foreignOutput, foreignText, offerTool } from '../../http/assistant-tools';
import { definedOf, parseInput } from '../../http/validation';
import type { FailureCause } from '../../net/http-client';
import { Refused } from '../../runtime/refusal';
import { getDelivery, readLog } from './deliveries';
import { logQuery, recoveryPreviewInput, subjectType } from './inputs';
import { deliveryOutput, recoveryOutput, recoveryPreviewOutput, webhookOutput } from './outputs';
import { previewRecovery, startPreview } from './recoveries';
import { WebhooksService } from './webhooks-service';
import type { App } from '../../app';

/** Why a delivery fails and what helps, for readers who have not read the documentation. */
const TEXTS: Readonly<Record<FailureCause, string> & Record<string, string>> = {
  dns: 'Host name not found. Check its spelling and its DNS record.',
  refused: 'Connection refused: nothing listens at this address, or a firewall blocks it.',
  unreachable: 'The host cannot be reached over the network.',
  tls: 'The secure connection failed. Check the certificate of the receiver: date, name and chain.',
  timeout:
    'No complete response in time. The receiver should answer first and do its work afterwards.',
  closed: 'The receiver closed the connection before its response was complete.',
  blocked_address:
    'The address belongs to this server or a private network. To allow it, set the option webhooks.allowPrivateNetworks.',
  invalid_request: 'The request is invalid. Check the address and what plugins add to the request.',
  invalid_response: 'The response is not valid HTTP.',
  aborted: 'The site shut down during this attempt. It does not count.',
  unknown: 'The request failed.',
  redirect:
    'The receiver redirects to another address. Redirects are not followed: enter the final address.',
  secret_unavailable:
    'The secret or a custom header cannot be decrypted: the encryption key of the site has changed. Rotate the secret and enter the headers again.',
  body_missing: 'The payload was deleted from the database.',
  imported: 'It came from an import or a copied database. The original site sends it.',
  discarded: 'A user discarded it when the webhook was switched on.',
  skipped: 'A user skipped it, so that later events of its record could be sent.',
  webhook_deleted: 'Its webhook was deleted while the event was being queued.',
  interrupted: 'This test was interrupted: its process ended.',
};

/** Every cause of a failure but those of a receiver's status. */
export const CAUSES: readonly string[] = Object.keys(TEXTS);

const STATUS_TEXTS: Readonly<Record<number, string>> = {
  400: 'it does not understand the request. Check its log.',
  401: 'it requires a login or rejects the signature. Compare the secret on both sides.',
  403: 'it refuses the request. Check for a firewall or a wrong signature.',
  404: 'there is nothing at this address. Check the path.',
  410: 'this address no longer exists. Enter the new one or delete the webhook.',
  429: 'too many requests. If it happens often, limit the requests per second.',
};
const BROKEN = 'it failed while handling the event. Check its log.';
const UNCOUNTED = 'only 200 to 299 counts as delivered.';

/** A cause from the log, in words; null for a self-explanatory one. */
export const causeText = (cause: string): string | null => {
  const [, status] = /^http_(\d{3})$/.exec(cause) ?? [];
  if (status) {
    const other = Number(status) >= 500 ? BROKEN : UNCOUNTED;
    return `The receiver answered ${status}: ${STATUS_TEXTS[Number(status)] ?? other}`;
  }
  return Object.hasOwn(TEXTS, cause) ? (TEXTS[cause] ?? null) : null;
};

const ANSWER_SHOWN = 2000;
const ATTEMPTS_SHOWN = 20;

const text = z.string();
const id = z.number().int().min(1);

const filters = {
  webhook: id.optional().describe('The id of a webhook'),
  event: text.optional().describe('The name of an event, such as contact.created'),
  status: z.enum(DELIVERY_STATUSES).optional(),
  state: z.enum(DELIVERY_STATES).optional().describe('failing: attempts failed, will be retried'),
  cause: text.optional().describe('Why it fails, such as refused, timeout or http_500'),
  subject_type: subjectType.optional(),
  subject_id: text.optional().describe('The id of the record that it is about'),
  from: text.optional().describe('RFC 3339: made at this time or later'),
  to: text.optional().describe('RFC 3339: made before this time'),
  q: text.optional().describe('Part of a delivery id, of the name of its record or of its cause'),
  recovery: id.optional().describe('The id of a recovery: deliveries that it resends'),
};

const findInput = z.strictObject({
  ...filters,
  limit: z.number().int().min(1).max(100).default(20),
  cursor: text.optional().describe('next_cursor of the page before'),
  include_foreign_text: foreignInput,
});

/** A delivery without what was sent and answered: that may be long. */
const found = deliveryOutput
  .omit({ status: true, first_attempt_at: true, duration_ms: true })
  .omit({ request: true, answer: true, attempts: true })
  .extend({
    subject: z.object({ type: text, id: text, label: foreignOutput }).nullable(),
    response_code: z.number().int().nullable(),
  });

const findOutput = z.object({
  deliveries: z.array(found),
  next_cursor: text.nullable(),
  total: z.number().int(),
  total_capped: z.boolean(),
});

const explainInput = z.strictObject({
  delivery_id: text.describe('The id of its row, or the one that its receiver knows'),
  include_foreign_text: foreignInput,
});

const explainOutput = z.object({
  delivery: found,
  explanation: text.nullable(),
  attempts: z.array(
    z.object({
      at: text,
      error: text.nullable(),
      response_code: z.number().int().nullable(),
      duration_ms: z.number().int(),
      manual: z.boolean(),
    })
  ),
  last_answer: foreignOutput,
  webhook: webhookOutput
    .pick({ id: true, name: true, url: true, active: true, disabled_reason: true })
    .extend({
      health: z.enum(HEALTH_STATES),
      failing_since: text.nullable(),
      paused_until: text.nullable(),
    }),
});

/** The schema omits all other keys of a delivery. */
const toFound = (one: Delivery, foreign: boolean): z.infer<typeof found> => {
  const label = foreign && one.subject ? foreignText(one.subject.label) : null;
  return found.parse({
    ...one,
    subject: one.subject && { ...one.subject, label },
    response_code: one.answer?.status ?? null,
  });
};

const asQuery = (input: object): Record<string, string> =>
  Object.fromEntries(
    Object.entries(definedOf(input)).map(([name, value]) => [name, String(value)])
  );

/** Tools for assistants about deliveries: as the routes, for users who may use those. */
export const offerWebhookTools = (app: App): void => {
  const requireOn = async (): Promise<void> => {
    if (await app.modules.isEnabled('webhooks')) return;
    throw new errors.ApplicationError('The module Webhooks is switched off.');
  };

  offerTool(app, {
    name: 'switchboard_find_deliveries',
    title: 'Find webhook deliveries',
    description:
      'Finds deliveries of webhooks by webhook, event, state, cause of failure, record, time or text; newest first.',
    action: 'webhooks.read',
    input: findInput,
    output: findOutput,
    run: async ({ include_foreign_text: foreign, ...input }) => {
      await requireOn();
      const { data, meta } = await readLog(app, parseInput(logQuery, asQuery(input)));
      return findOutput.parse({ deliveries: data.map((one) => toFound(one, foreign)), ...meta });
    },
  });

  offerTool(app, {
    name: 'switchboard_explain_failure',
    title: 'Explain a webhook delivery',
    description:
      'Says why a delivery fails or failed and what helps, with its attempts and how its webhook does. The last answer is shown only with include_foreign_text.',
    action: 'webhooks.read',
    input: explainInput,
    output: explainOutput,
    run: async ({ delivery_id: given, include_foreign_text: foreign }) => {
      await requireOn();
      const delivery = await getDelivery(app, given);
      const webhook = await new WebhooksService(app).get(delivery.webhook_id);
      return explainOutput.parse({
        delivery: toFound(delivery, foreign),
        explanation: delivery.error === null ? null : causeText(delivery.error),
        attempts: delivery.attempts
          .slice(-ATTEMPTS_SHOWN)
          .map((one) => ({ ...one, response_code: one.answer?.status ?? null })),
        last_answer:
          foreign && delivery.answer
            ? foreignText(delivery.answer.body.slice(0, ANSWER_SHOWN))
            : null,
        webhook: { ...webhook, ...webhook.health, health: webhook.health.state },
      });
    },
  });

  offerTool(app, {
    name: 'switchboard_preview_recovery',
    title: 'Preview sending failed deliveries again',
    description:
      'Says how many failing and failed deliveries a filter finds, of which webhooks. Sends nothing. Show it to the person before starting it.',
    action: 'webhooks.update',
    // Strict: a filter that is misspelt must not leave everything.
    input: z.strictObject({
      filter: z.strictObject({
        ...filters,
        ids: z
          .array(z.union([id, text]))
          .max(500)
          .optional()
          .describe('Ids of deliveries'),
      }),
      include_foreign_text: foreignInput,
    }),
    output: recoveryPreviewOutput.extend({ sample: z.array(found) }),
    run: async ({ filter, include_foreign_text: foreign }, may) => {
      await requireOn();
      const input = parseInput(recoveryPreviewInput, { filter });
      const { sample, ...preview } = await previewRecovery(app, input.filter);
      const shown = may('webhooks.read') ? sample.map((one) => toFound(one, foreign)) : [];
      return { ...preview, sample: shown };
    },
  });

  offerTool(app, {
    name: 'switchboard_start_recovery',
    title: 'Send failed deliveries again',
    description:
      'Starts sending again what a preview has shown, once, by the id of that preview. The person has to have agreed.',
    action: 'webhooks.update',
    input: z.strictObject({ preview_id: text }),
    output: recoveryOutput,
    run: async ({ preview_id: preview }) => {
      await requireOn();
      const begun = await startPreview(app, preview);
      if (begun instanceof Refused) throw new errors.ApplicationError(begun.refusal.message);
      return begun;
    },
  });
};
