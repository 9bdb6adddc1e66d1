import { failureMessage, type FailureCause } from './attempt-outcome';

export interface Failure {
  cause: FailureCause;
  message: string;
}

const CAUSE_BY_CODE: Record<string, FailureCause> = {
  ERR_BLOCKED_ADDRESS: 'blocked_address',
  ERR_NAME_NOT_RESOLVED: 'dns',
  ECONNREFUSED: 'refused',
  EHOSTUNREACH: 'unreachable',
  EHOSTDOWN: 'unreachable',
  ENETUNREACH: 'unreachable',
  ENETDOWN: 'unreachable',
  EADDRNOTAVAIL: 'unreachable',
  EACCES: 'unreachable',
  EPERM: 'unreachable',
  EINVAL: 'unreachable',
  ETIMEDOUT: 'timeout',
  ECONNRESET: 'closed',
  ECONNABORTED: 'closed',
  EPIPE: 'closed',
  ERR_CLOSED_EARLY: 'closed',
  ERR_INVALID_ANSWER: 'invalid_response',
  EPROTO: 'tls',
  HOSTNAME_MISMATCH: 'tls',
  ERR_INVALID_CHAR: 'invalid_request',
  ERR_INVALID_HTTP_TOKEN: 'invalid_request',
  ERR_UNESCAPED_CHARACTERS: 'invalid_request',
  ERR_INVALID_URL: 'invalid_request',
  // What got itself objects to, such as the host name `unix`, has no code of its own.
  ERR_GOT_REQUEST_ERROR: 'invalid_request',
};

/** OpenSSL's names for what can be wrong with a certificate have no common prefix. */
const CERTIFICATE_CODE =
  /^(?:ERR_TLS_|ERR_SSL_|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_|ERROR_IN_C|PATH_LENGTH_)/;

const CERTIFICATE_MESSAGES: Record<string, string> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'The certificate is self-signed.',
  SELF_SIGNED_CERT_IN_CHAIN: 'The certificate was issued by an unknown authority.',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'The certificate chain is incomplete.',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'The certificate was issued by an unknown authority.',
  CERT_HAS_EXPIRED: 'The certificate has expired.',
  CERT_NOT_YET_VALID: 'The certificate is not valid yet.',
  CERT_REVOKED: 'The certificate was revoked.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'The certificate belongs to another host name.',
};

/** An error, what it wraps, and (several addresses tried) what it gathers: the first code found. */
function codeOf(error: unknown, depth = 0): string {
  if (typeof error !== 'object' || error === null || depth > 4) return '';
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown };
  const inner = codeOf(cause, depth + 1) || (Array.isArray(errors) && codeOf(errors[0], depth + 1));
  return inner || (typeof code === 'string' ? code : '');
}

/**
 * Names a network error in words of ours. The driver's own text is dropped: it can hold addresses
 * and, for a refused one, would tell an open port from a closed one.
 */
export function describeError(error: unknown): Failure {
  const code = codeOf(error);
  const cause = causeOf(code, error);
  return { cause, message: CERTIFICATE_MESSAGES[code] ?? failureMessage(cause) };
}

function causeOf(code: string, error: unknown): FailureCause {
  // Node gives a hang-up during the TLS handshake the code of any other hang-up.
  if (code === 'ECONNRESET' && /before secure TLS connection/.test(String(error))) return 'tls';
  const known = Object.hasOwn(CAUSE_BY_CODE, code) ? CAUSE_BY_CODE[code] : undefined;
  if (known) return known;
  if (CERTIFICATE_CODE.test(code)) return 'tls';
  return code.startsWith('HPE_') ? 'invalid_response' : 'unknown';
}

/** The receiver hung up: on a kept-alive connection that may just mean that it had been idle. */
export function isHangUp(error: unknown): boolean {
  return causeOf(codeOf(error), error) === 'closed';
}
