import { SpanStatusCode } from '@opentelemetry/api';
import type { Attempt } from '../../../../shared/contracts/webhooks';
import type { RequestArgs } from '../../hooks';
import type { AddressGuard } from '../../net/guard';
import {
  type Answer,
  type AttemptOutcome,
  classify,
  HttpClient,
  openGot,
  openNode,
} from '../../net/http-client';
import { inSpan, measures } from '../../observability/measures';
import { debugLog, isoTime } from '../../runtime/text';
import { unsealOften } from '../../secrets/secret-box';
import { endedLine, startedLine } from '../debug-lines';
import type { DeliveryOutcome, QueuedDelivery } from '../deliveries/store';
import {
  hideEchoes,
  keepFreeHeaders,
  redactHeaders,
  signatureHeaders,
  withOwnHeaders,
} from '../rules/request-headers';
import type { WebhookRow } from '../tables';
import { openHeaders, previousSecret, toWebhook } from '../webhook';
import { createSiteGuard } from '../nodes';
import type { App } from '../../app';

/** So that a receiver can tell what is not of now; docs/contract-webhooks.md#requests-to-receivers. */
export const REPLAYED = { 'X-Service-Replayed': '1' };

const USER_AGENT = 'Switchboard/1 (+https://www.npmjs.com/package/strapi-plugin-switchboard)';

export interface AttemptResult extends Pick<DeliveryOutcome, 'attempt' | 'endedAt'> {
  ok: boolean;
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

/** A webhook's secrets and its own headers; null if one can no longer be decrypted. */
const unlock = (app: App, row: WebhookRow) => {
  const secret = unsealOften(app, row.secret);
  const own = row.headers ? openHeaders(app, row, unsealOften) : {};
  if (secret === null || Object.values(own).includes(null)) return null;
  const previous = previousSecret(row);
  const previousKey = previous === null ? null : unsealOften(app, previous);
  return { keys: { secret, previousSecret: previousKey }, own: own as Headers };
};

const SECRET_UNAVAILABLE: AttemptOutcome = { kind: 'failed', cause: 'unknown', durationMs: 0 };

/** Sends deliveries. */
export class Sender {
  readonly guard: AddressGuard;
  private readonly client: HttpClient;

  constructor(private readonly app: App) {
    const { timeoutMs, concurrency, client } = app.options.webhooks;
    this.guard = createSiteGuard(app);
    this.client = new HttpClient({
      guard: this.guard,
      timeoutMs,
      // Several webhooks may lead to one host; waiting for a socket would count against the deadline.
      maxSocketsPerHost: concurrency + 16,
      transport: client === 'got' ? openGot : openNode,
    });
  }

  /** Makes one attempt of a delivery: hook, sign, guard, post, classify. Never rejects. */
  attempt(delivery: QueuedDelivery, row: WebhookRow, manual: boolean): Promise<AttemptResult> {
    const attributes = {
      'switchboard.webhook_id': Number(row.id),
      'switchboard.delivery_id': delivery.deliveryId,
      'switchboard.event': delivery.event,
      'switchboard.manual': manual,
    };
    return inSpan('switchboard.attempt', attributes, async (span) => {
      const result = await this.post(delivery, row, manual);
      const { answer, error, duration_ms: duration } = result.attempt;
      if (answer) span.setAttribute('http.response.status_code', answer.status);
      if (error !== null) {
        span.setAttribute('error.type', error);
        span.setStatus({ code: SpanStatusCode.ERROR, message: error });
      }
      measures().attempts.record(duration / 1000, { outcome: result.ok ? 'sent' : 'failed' });
      return result;
    });
  }

  close(): void {
    this.client.close();
  }

  private async post(delivery: QueuedDelivery, row: WebhookRow, manual: boolean) {
    const startedAt = Date.now();
    const { deliveryId, event, body, replayed } = delivery;
    debugLog(this.app.strapi)?.(startedLine(deliveryId, row, manual));
    const unlocked = unlock(this.app, row);
    const own = unlocked?.own ?? {};
    const { url, headers: free } = await this.prepare(row, event, own);
    const timestamp = Math.floor(Date.now() / 1000);
    const signed = { deliveryId, event, body, timestamp };
    const headers = unlocked
      ? {
          ...withOwnHeaders(free, own),
          ...(replayed && REPLAYED),
          ...signatureHeaders({ ...unlocked.keys, ...signed }),
        }
      : free;
    const outcome = unlocked ? await this.client.post({ url, headers, body }) : SECRET_UNAVAILABLE;
    const { ok, cause } = classify(outcome);
    const error = unlocked ? cause : 'secret_unavailable';
    debugLog(this.app.strapi)?.(endedLine(deliveryId, outcome, error));
    return {
      ok,
      endedAt: this.app.clock.now(),
      attempt: {
        at: isoTime(startedAt),
        request: { url, headers: redactHeaders(headers, Object.keys(own)) },
        answer: toAnswer(outcome, own),
        error,
        duration_ms: Math.round(outcome.durationMs),
        manual,
      },
    };
  }

  /**
   * Applies the hook to the request. The body and what signs it are not the hook's to change, and the
   * webhook's own headers not the hook's to see: they are added to what it leaves.
   */
  private async prepare(row: WebhookRow, event: string, own: Headers): Promise<RequestArgs> {
    const saysAgent = Object.keys(own).some((name) => /^user-agent$/i.test(name));
    const args: RequestArgs = {
      url: row.url,
      headers: {
        'Content-Type': 'application/json',
        ...(!saysAgent && { 'User-Agent': USER_AGENT }),
      },
    };
    const hook = this.app.hooks.get('service_crm_webhook_request_args');
    if (hook.getHandlers().length === 0) return args;
    const next = (await hook.call({ args, webhook: toWebhook(row), event }))?.args;
    return {
      url: typeof next?.url === 'string' ? next.url : row.url,
      headers: keepFreeHeaders(next?.headers),
    };
  }
}
