/**
 * Why an attempt brought no complete answer. Answers that are failures by their status have the
 * further causes `redirect` and `http_<status>`, which `classify` gives.
 */
export const FAILURE_CAUSES = [
  'dns',
  'refused',
  'unreachable',
  'tls',
  'timeout',
  'closed',
  'blocked_address',
  'invalid_request',
  'invalid_response',
  'aborted',
  'unknown',
] as const;

export type FailureCause = (typeof FAILURE_CAUSES)[number];

/** What `classify` calls a failed attempt. */
export type AttemptCause = FailureCause | 'redirect' | `http_${number}`;

/** What a receiver answered, fit for a database: no NUL, bounded. */
export interface Answer {
  status: number;
  /** Names in lower case; a repeated header's values are joined by `, `. */
  headers: Record<string, string>;
  /** At most the first 20,000 bytes, read as UTF-8. */
  body: string;
  /** More than that was sent, and not read. */
  truncated: boolean;
}

/** One attempt, as the HTTP client saw it; times in milliseconds. */
export type AttemptOutcome =
  | ({ kind: 'answered'; durationMs: number } & Answer)
  | ({
      kind: 'failed';
      cause: FailureCause;
      /** A sentence of ours, safe to show and to store. */
      message: string;
      durationMs: number;
      /** What had arrived of the answer, if its head had. */
    } & Partial<Answer>);

/** Whether an attempt delivered, and if not, why. */
export type Classification =
  { ok: true; cause: null; message: null } | { ok: false; cause: AttemptCause; message: string };

const FAILURE_MESSAGES: Record<FailureCause, string> = {
  dns: 'The host name could not be resolved.',
  refused: 'The connection was refused.',
  unreachable: 'The host could not be reached.',
  tls: 'The secure connection (TLS) could not be made.',
  timeout: 'There was no complete answer in time.',
  closed: 'The receiver closed the connection before its answer was complete.',
  blocked_address:
    'The address is that of this server or of a private network, which is refused unless the option webhooks.allowPrivateNetworks allows it.',
  invalid_request: 'The request cannot be sent.',
  invalid_response: 'The answer is not valid HTTP.',
  aborted: 'The attempt was stopped because the site is shutting down.',
  unknown: 'The request failed.',
};

export const failureMessage = (cause: FailureCause): string => FAILURE_MESSAGES[cause];

/**
 * Judges an attempt (docs/contract-webhooks.md#delivery-states): any 2xx delivers; a redirect,
 * any other status and no complete answer are failures.
 */
export function classify(outcome: AttemptOutcome): Classification {
  if (outcome.kind === 'failed') {
    return { ok: false, cause: outcome.cause, message: outcome.message };
  }
  const { status } = outcome;
  if (status >= 200 && status < 300) return { ok: true, cause: null, message: null };
  if (status >= 300 && status < 400) {
    return {
      ok: false,
      cause: 'redirect',
      message: `The receiver answered with a redirect (${status}), which is not followed.`,
    };
  }
  return {
    ok: false,
    cause: `http_${status}`,
    message: `The receiver answered with status ${status}.`,
  };
}
