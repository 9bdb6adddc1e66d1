import { SpanStatusCode } from '@opentelemetry/api';
import type { Core } from '@strapi/strapi';
import type { Attempt, Webhook } from '../../../../shared/contracts/webhooks';
import { getOptions } from '../../config';
import { debugLog } from '../../runtime/debug-log';
import { getHook, type RequestArgs } from '../../hooks';
import { isoTime } from '../../runtime/iso-time';
import { type Answer, type AttemptOutcome, classify } from '../../net/attempt-outcome';
import type { AddressGuard } from '../../net/guard';
import { openGot } from '../../net/got-transport';
import { createHttpClient, type HttpClient } from '../../net/http-client';
import { openUndici } from '../../net/undici-transport';
import { unsealOften } from '../../secrets/secret-box';
import { endedLine, startedLine } from '../debug-lines';
import { measures } from '../../observability/measures';
import { inSpan } from '../../observability/spans';
import { createSiteGuard } from '../delivering/site-guard';
import { openHeaders } from '../own-headers';
import { hideEchoes, withOwnHeaders } from '../rules/own-headers';
import { keepFreeHeaders, redactHeaders, REPLAYED } from '../rules/request-headers';
import { signatureHeaders } from '../rules/signature';
import { previousSecret, toWebhook } from '../webhook';
import type { WebhookRow } from '../tables';
import { getDeliveryStore, type QueuedDelivery } from '../deliveries/store';

const USER_AGENT = 'Switchboard/1 (+https://www.npmjs.com/package/strapi-plugin-switchboard)';

export interface AttemptResult {
  ok: boolean;
  /** As the log keeps it. */
  attempt: Attempt;
  /** When the attempt ended, epoch milliseconds of the database's clock. */
  endedAt: number;
}

/** Makes one attempt of a delivery: hook, sign, guard, post, classify. Never rejects. */
export interface Sender {
  readonly guard: AddressGuard;
  attempt(
    delivery: Pick<QueuedDelivery, 'deliveryId' | 'event' | 'body' | 'replayed'>,
    webhook: WebhookRow,
    manual: boolean
  ): Promise<AttemptResult>;
  close(): void;
}

type Headers = Record<string, string>;

/** An answer as the log keeps it: without credentials, and without what was sent in own headers. */
const toAnswer = (answer: Partial<Answer>, own: Headers): Attempt['answer'] => {
  const { status, headers = {}, body = '', truncated = false } = answer;
  if (status === undefined) return null;
  const shown = redactHeaders(headers);
  if (Object.keys(own).length === 0) return { status, headers: shown, body, truncated };
  const hide = hideEchoes(own);
  const hidden = Object.entries(shown).map(([name, value]) => [name, hide(value)] as const);
  return { status, headers: Object.fromEntries(hidden), body: hide(body), truncated };
};

/** The webhook's secret and its own headers; null where one can no longer be decrypted. */
const unlock = (strapi: Core.Strapi, row: WebhookRow): { secret: string; own: Headers } | null => {
  const secret = unsealOften(strapi, row.secret);
  const own = row.headers ? openHeaders(strapi, row, unsealOften) : {};
  if (secret === null || Object.values(own).includes(null)) return null;
  return { secret, own: own as Headers };
};

export const createSender = (strapi: Core.Strapi): Sender => {
  const { timeoutMs, concurrency, client: library } = getOptions(strapi).webhooks;
  const guard = createSiteGuard(strapi);
  const client: HttpClient = createHttpClient({
    guard,
    timeoutMs,
    // Several webhooks may lead to one host; waiting for a socket would count against the deadline.
    maxSocketsPerHost: concurrency + 16,
    transport: library === 'undici' ? openUndici : openGot,
  });

  /**
   * What the hook makes of the request. The body and what signs it are not the hook's to change, and
   * the webhook's own headers not the hook's to see: they are added to what it leaves.
   */
  const prepare = async (row: WebhookRow, event: string, own: Headers): Promise<RequestArgs> => {
    const saysAgent = Object.keys(own).some((name) => /^user-agent$/i.test(name));
    const args: RequestArgs = {
      url: row.url,
      headers: {
        'Content-Type': 'application/json',
        ...(!saysAgent && { 'User-Agent': USER_AGENT }),
      },
    };
    const hook = getHook(strapi, 'service_crm_webhook_request_args');
    if (hook.getHandlers().length === 0) return args;
    const webhook: Webhook = toWebhook(row);
    const changed = await hook.call({ args, webhook, event });
    const next = changed?.args;
    return {
      url: typeof next?.url === 'string' ? next.url : row.url,
      headers: keepFreeHeaders(next?.headers),
    };
  };

  const failed = (cause: 'secret_unavailable'): AttemptOutcome & { secret?: true } => ({
    kind: 'failed',
    cause: 'unknown',
    message: cause,
    durationMs: 0,
    secret: true,
  });

  const attempt: Sender['attempt'] = async (delivery, row, manual) => {
    const startedAt = Date.now();
    const { deliveryId } = delivery;
    debugLog(strapi)?.(startedLine(deliveryId, row, manual));
    const unlocked = unlock(strapi, row);
    const own = unlocked?.own ?? {};
    const { url, headers: free } = await prepare(row, delivery.event, own);
    const previous = previousSecret(row);
    const headers =
      unlocked === null
        ? free
        : {
            ...withOwnHeaders(free, own),
            ...(delivery.replayed && REPLAYED),
            ...signatureHeaders({
              secret: unlocked.secret,
              previousSecret: previous === null ? null : unsealOften(strapi, previous),
              deliveryId,
              event: delivery.event,
              timestamp: Math.floor(Date.now() / 1000),
              body: delivery.body,
            }),
          };
    const outcome: AttemptOutcome & { secret?: true } =
      unlocked === null
        ? failed('secret_unavailable')
        : await client.post({ url, headers, body: delivery.body });
    const { ok, cause } = classify(outcome);
    const error = outcome.secret ? 'secret_unavailable' : cause;
    debugLog(strapi)?.(endedLine(deliveryId, outcome, error));
    return {
      ok,
      endedAt: getDeliveryStore(strapi).now(),
      attempt: {
        at: isoTime(startedAt),
        request: { url, headers: redactHeaders(headers, Object.keys(own)) },
        answer: toAnswer(outcome, own),
        error,
        duration_ms: Math.round(outcome.durationMs),
        manual,
      },
    };
  };

  return {
    guard,
    attempt: (delivery, row, manual) => {
      const attributes = {
        'switchboard.webhook_id': Number(row.id),
        'switchboard.delivery_id': delivery.deliveryId,
        'switchboard.event': delivery.event,
        'switchboard.manual': manual,
      };
      return inSpan('switchboard.attempt', attributes, async (span) => {
        const result = await attempt(delivery, row, manual);
        const { answer, error, duration_ms: duration } = result.attempt;
        if (answer) span.setAttribute('http.response.status_code', answer.status);
        if (error !== null) {
          span.setAttribute('error.type', error);
          span.setStatus({ code: SpanStatusCode.ERROR, message: error });
        }
        measures().attempts.record(duration / 1000, { outcome: result.ok ? 'sent' : 'failed' });
        return result;
      });
    },
    close: () => client.close(),
  };
};
