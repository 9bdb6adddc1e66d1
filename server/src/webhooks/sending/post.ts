import { parseCidrList } from '../../net/address';
import { createAddressGuard } from '../../net/guard';
import {
  type Answer,
  type AttemptOutcome,
  classify,
  HttpClient,
  openGot,
  openNode,
} from '../../net/http-client';
import type { Laned } from '../../runtime/threads';
import { redactText } from '../../runtime/text';
import type { LoggedAttempt } from '../deliveries/attempts';
import {
  hideEchoes,
  redactHeaders,
  signatureHeaders,
  withOwnHeaders,
} from '../rules/request-headers';

/** So that a receiver can tell what is not of now; docs/contract-webhooks.md#requests-to-receivers. */
export const REPLAYED = { 'X-Service-Replayed': '1' };

export type Headers = Record<string, string>;

/** An attempt to make. All of it can be passed to another thread. */
export interface Post extends Laned {
  /** The revision of webhooks when this one was read. */
  revision: number;
  deliveryId: string;
  event: string;
  body: string;
  replayed: boolean;
  manual: boolean;
  url: string;
  /** Headers that hooks may decide about, as they left them. */
  free: Headers;
  localAllowed: boolean;
  /** Its secrets, and the webhook's own headers; null: they can no longer be decrypted. */
  unlocked: { secret: string; previousSecret: string | null; own: Headers } | null;
}

export interface Posted {
  ok: boolean;
  attempt: LoggedAttempt;
  /** The answer's header of that name. */
  retryAfter: string | undefined;
}

export interface PosterOptions {
  client: 'got' | 'node';
  timeoutMs: number;
  maxSocketsPerHost: number;
  /** Private addresses that are allowed, as ranges. */
  allowed: readonly string[];
}

/** The log's columns of an answer, or of none: without credentials, and without what was sent in own headers. */
export const columnsOf = (answer: Partial<Answer>, own: Headers) => {
  const { status, headers = {}, body = '', truncated = false } = answer;
  if (status === undefined)
    return { status: null, answer_headers: null, answer_body: null, truncated: null };
  const shown = redactHeaders(headers);
  if (Object.keys(own).length === 0)
    return { status, answer_headers: JSON.stringify(shown), answer_body: body, truncated };
  const hide = hideEchoes(own);
  const hidden = Object.entries(shown).map(([name, value]) => [name, hide(value)] as const);
  const answerHeaders = JSON.stringify(Object.fromEntries(hidden));
  return { status, answer_headers: answerHeaders, answer_body: hide(body), truncated };
};

const SECRET_UNAVAILABLE: AttemptOutcome = { kind: 'failed', cause: 'unknown', durationMs: 0 };

/** Makes attempts: signs, guards, posts, classifies, and leaves out what the log may not have. */
export class Poster {
  private readonly client: HttpClient;

  constructor({ client, timeoutMs, maxSocketsPerHost, allowed }: PosterOptions) {
    this.client = new HttpClient({
      guard: createAddressGuard({ allowedCidrs: parseCidrList(allowed) }),
      timeoutMs,
      maxSocketsPerHost,
      transport: client === 'got' ? openGot : openNode,
    });
  }

  /** Never rejects. */
  async post(post: Post): Promise<Posted> {
    const startedAt = Date.now();
    const { body, deliveryId, event, free, localAllowed, manual, replayed, unlocked, url } = post;
    const own = unlocked?.own ?? {};
    const timestamp = Math.floor(startedAt / 1000);
    // Not by spreading, which takes ten times as long.
    const headers = unlocked
      ? Object.assign(
          withOwnHeaders(free, own),
          replayed && REPLAYED,
          signatureHeaders({ deliveryId, event, body, timestamp, ...unlocked })
        )
      : free;
    const outcome = unlocked
      ? await this.client.post({ url, headers, body, localAllowed })
      : SECRET_UNAVAILABLE;
    const { ok, cause } = classify(outcome);
    return {
      ok,
      attempt: {
        at: startedAt,
        manual,
        error: unlocked ? cause : 'secret_unavailable',
        duration_ms: Math.round(outcome.durationMs),
        // A hook may have put a password into it.
        url: url.includes('@') ? redactText(url) : url,
        request_headers: JSON.stringify(redactHeaders(headers, Object.keys(own))),
        ...columnsOf(outcome, own),
      },
      retryAfter: outcome.headers?.['retry-after'],
    };
  }

  /** Ends what is under way and closes every connection. */
  close(): void {
    this.client.close();
  }
}
