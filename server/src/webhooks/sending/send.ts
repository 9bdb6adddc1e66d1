import path from 'node:path';
import { SpanStatusCode } from '@opentelemetry/api';
import { createFaultLog } from '../../database/retry';
import type { RequestArgs } from '../../hooks';
import type { AddressGuard } from '../../net/guard';
import { namesOf } from '../../net/resolver';
import { inSpan, measures } from '../../observability/measures';
import { debugLog } from '../../runtime/text';
import { type Laned, Threads, UNBEGUN } from '../../runtime/threads';
import { unsealOften } from '../../secrets/secret-box';
import { endedLine, startedLine } from '../debug-lines';
import type { DeliveryOutcome, QueuedDelivery } from '../deliveries/store';
import { keepFreeHeaders } from '../rules/request-headers';
import type { WebhookRow } from '../tables';
import { headerNames, openHeaders, previousSecret, toWebhook } from '../webhook';
import { addressFacts, createSiteGuard, isLocalAllowed } from '../nodes';
import { subscribersOf } from '../subscriptions';
import { type Headers, type Post, type Posted, Poster, type PosterOptions } from './post';
import type { SendingThread } from './thread';
import type { App } from '../../app';

const THREAD = path.join(__dirname, 'thread.js');

const USER_AGENT = 'Switchboard/1 (+https://www.npmjs.com/package/strapi-plugin-switchboard)';

export type AttemptResult = Posted & Pick<DeliveryOutcome, 'endedAt'>;

interface Attempted extends Pick<Post, 'manual' | 'revision' | keyof Laned> {
  webhook: WebhookRow;
  request: RequestArgs;
}

/** A webhook's secrets and its own headers; null if one can no longer be decrypted. */
const unlock = (app: App, row: WebhookRow) => {
  const secret = unsealOften(app, row.secret);
  const own = row.headers ? openHeaders(app, row, unsealOften) : {};
  if (secret === null || Object.values(own).includes(null)) return null;
  const previous = previousSecret(row);
  const previousKey = previous === null ? null : unsealOften(app, previous);
  return { secret, previousSecret: previousKey, own: own as Headers };
};

export class Sender {
  readonly guard: AddressGuard;
  private readonly facts: ReturnType<typeof addressFacts>;
  readonly close: () => void;
  private readonly make: (post: Post) => Promise<Posted | typeof UNBEGUN | null>;

  constructor(private readonly app: App) {
    const { timeoutMs, concurrency, client, dispatch, threads } = app.options.webhooks;
    this.guard = createSiteGuard(app);
    this.facts = addressFacts(app);
    const options: PosterOptions = {
      client: client === 'got' ? client : 'node',
      timeoutMs,
      // Several webhooks may lead to one host; waiting for a socket would count against the deadline.
      maxSocketsPerHost: concurrency + 16,
      allowed: this.facts.allowed,
    };
    if (dispatch && threads > 0) {
      const died = createFaultLog(app.log).bind(null, 'switchboard: a thread that sends died');
      const workerData: SendingThread = {
        ...options,
        atOnce: concurrency,
        changes: subscribersOf(app).changes,
      };
      const own = { file: THREAD, workerData, settings: namesOf, died };
      const posting = new Threads<Post, Posted | typeof UNBEGUN>(threads, own);
      this.make = (post) => posting.run(post);
      this.close = () => posting.end();
    } else {
      const poster = new Poster(options);
      this.make = (post) => poster.post(post);
      this.close = () => poster.close();
    }
  }

  /** Makes one attempt: sign, guard, post, classify. Never rejects; null if it is unknown whether it was made. */
  attempt(
    delivery: QueuedDelivery,
    attempted: Attempted
  ): Promise<AttemptResult | typeof UNBEGUN | null> {
    const { manual, webhook } = attempted;
    const attributes = {
      'switchboard.webhook_id': Number(webhook.id),
      'switchboard.delivery_id': delivery.deliveryId,
      'switchboard.event': delivery.event,
      'switchboard.manual': manual,
    };
    return inSpan('switchboard.attempt', attributes, async (span) => {
      const result = await this.post(delivery, attempted);
      if (result === null || result === UNBEGUN) return result;
      const { status, error, duration_ms: duration } = result.attempt;
      if (status !== null) span.setAttribute('http.response.status_code', status);
      if (error !== null) {
        span.setAttribute('error.type', error);
        span.setStatus({ code: SpanStatusCode.ERROR, message: error });
      }
      measures().attempts.record(duration / 1000, { outcome: result.ok ? 'sent' : 'failed' });
      return result;
    });
  }

  private async post(delivery: QueuedDelivery, attempted: Attempted) {
    const { webhook: row, request, ...turn } = attempted;
    const { deliveryId, event, body, replayed } = delivery;
    debugLog(this.app.strapi)?.(startedLine(deliveryId, row, turn.manual));
    const unlocked = unlock(this.app, row);
    const localAllowed = await isLocalAllowed(this.app, this.facts);
    const { url, headers: free } = request;
    const post = { url, free, localAllowed, unlocked, ...turn };
    const posted = await this.make({ deliveryId, event, body, replayed, ...post });
    if (posted === null || posted === UNBEGUN) return posted;
    debugLog(this.app.strapi)?.(endedLine(deliveryId, posted.attempt));
    return { endedAt: this.app.clock.now(), ...posted };
  }

  /** Applies the hook, which can neither change the body and its signatures nor see the webhook's own headers. */
  async prepare(row: WebhookRow, event: string): Promise<RequestArgs> {
    const saysAgent = headerNames(row).some((name) => /^user-agent$/i.test(name));
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
