import type { Core } from '@strapi/strapi';
import type { Attempt, Webhook } from '../../../shared/contracts/webhooks';
import { getOptions } from '../config';
import { getHook, type RequestArgs } from '../hooks';
import { isoTime } from '../iso-time';
import { parseCidrList } from '../net/address';
import { type AttemptOutcome, classify } from '../net/attempt-outcome';
import { type AddressGuard, createAddressGuard } from '../net/guard';
import { createHttpClient, type HttpClient } from '../net/http-client';
import { unseal } from '../secrets/secret-box';
import { keepFreeHeaders, redactHeaders } from './rules/request-headers';
import { signatureHeaders } from './rules/signature';
import { toWebhook } from './serialize';
import type { DeliveryRow, WebhookRow } from './tables';

const USER_AGENT = 'Switchboard/1 (+https://www.npmjs.com/package/strapi-plugin-switchboard)';

export interface AttemptResult {
  ok: boolean;
  /** As the log keeps it. */
  attempt: Attempt;
  /** When the attempt ended, epoch milliseconds. */
  endedAt: number;
}

/** Makes one attempt of a delivery: hook, sign, guard, post, classify. Never rejects. */
export interface Sender {
  readonly guard: AddressGuard;
  attempt(
    delivery: Pick<DeliveryRow, 'delivery_id' | 'event' | 'body'>,
    webhook: WebhookRow,
    manual: boolean
  ): Promise<AttemptResult>;
  close(): void;
}

/** Local addresses are allowed in these environments; specification 1, Limits. */
const LOCAL_ENVIRONMENTS = new Set(['development', 'local']);

const createGuard = (strapi: Core.Strapi): AddressGuard => {
  const { allowPrivateNetworks } = getOptions(strapi).webhooks;
  const environment = String(strapi.config.get('environment', process.env.NODE_ENV ?? ''));
  const allowedHere = LOCAL_ENVIRONMENTS.has(environment) || allowPrivateNetworks === true;
  return createAddressGuard({
    allowedCidrs: Array.isArray(allowPrivateNetworks) ? parseCidrList(allowPrivateNetworks) : [],
    isLocalAllowed: async () =>
      (await getHook(strapi, 'service_crm_webhook_allow_local').call(allowedHere)) === true,
  });
};

export const createSender = (strapi: Core.Strapi): Sender => {
  const { timeoutMs, concurrency } = getOptions(strapi).webhooks;
  const guard = createGuard(strapi);
  const client: HttpClient = createHttpClient({
    guard,
    timeoutMs,
    // Several webhooks may lead to one host; waiting for a socket would count against the deadline.
    maxSocketsPerHost: concurrency + 16,
  });

  /** What the hook makes of the request. The body and what signs it are not the hook's to change. */
  const prepare = async (row: WebhookRow, event: string): Promise<RequestArgs> => {
    const args: RequestArgs = {
      url: row.url,
      headers: { 'Content-Type': 'application/json', 'User-Agent': USER_AGENT },
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

  return {
    guard,
    async attempt(delivery, row, manual) {
      const startedAt = Date.now();
      const { url, headers: free } = await prepare(row, delivery.event);
      const secret = unseal(strapi, row.secret);
      const headers =
        secret === null
          ? free
          : {
              ...free,
              ...signatureHeaders({
                secret,
                deliveryId: delivery.delivery_id,
                event: delivery.event,
                timestamp: Math.floor(Date.now() / 1000),
                body: delivery.body,
              }),
            };
      const outcome: AttemptOutcome & { secret?: true } =
        secret === null
          ? failed('secret_unavailable')
          : await client.post({ url, headers, body: delivery.body });
      const { ok, cause } = classify(outcome);
      const error = outcome.secret ? 'secret_unavailable' : cause;
      const answer =
        outcome.status === undefined
          ? null
          : {
              status: outcome.status,
              headers: outcome.headers ?? {},
              body: outcome.body ?? '',
              truncated: outcome.truncated ?? false,
            };
      return {
        ok,
        endedAt: Date.now(),
        attempt: {
          at: isoTime(startedAt),
          request: { url, headers: redactHeaders(headers) },
          answer,
          error,
          duration_ms: Math.round(outcome.durationMs),
          manual,
        },
      };
    },
    close: () => client.close(),
  };
};
