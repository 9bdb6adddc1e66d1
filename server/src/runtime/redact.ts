/** What stands where a credential was. */
export const REDACTED = '***';

const WORDS =
  'token|secret|passw(?:or)?d|passwd|pwd|api[-_]?key|access[-_]?key|signature|sig|auth|authorization|session|jwt|key|code|credential';

/** `name=value` in a query, a fragment, a form or a cookie, also percent-encoded once. */
const PAIR = new RegExp(
  `((?:^|[?&#;,\\s]|%3F|%26|%23)(?:[\\w.-]*[-_.])?(?:access|refresh|id|client|auth|bearer|x-amz-)?[-_]?(?:${WORDS})(?:=|%3D))(?:(?!%26|%23)[^&#;,\\s"'<>])+`,
  'gi'
);
/** `https://user:password@host`. */
const USERINFO = /(?<![a-z0-9+.-])([a-z0-9+.-]+:\/\/)[^/?#\s]+@/gi;
/** A scheme of the header Authorization, wherever it stands. */
const SCHEME = /\b(bearer|basic)(\s+)[\w.~+/=-]{6,}/gi;
/**
 * Credentials that can be told by their shape: a JWT, and the prefixes of well-known issuers. What looks
 * like the beginning of a JWT ends where another one begins: else each would be followed to the end.
 */
const SHAPES =
  /\beyJ(?:(?!-eyJ)[\w-]){5,}\.[\w-]{5,}(?:\.[\w-]*)?|\b(?:whsec_|sk_(?:live|test)_|rk_(?:live|test)_|xox[abeprs]-|gh[opusr]_|github_pat_|glpat-|pos_secret_)[\w+/=-]+/g;

/**
 * Takes credentials out of text that is shown or logged: tokens in URLs, schemes, known shapes. In time
 * linear to the text, which may be anybody's: no expression here goes over a run of characters once for
 * each place in it.
 */
export const redactText = (text: string): string =>
  text
    .replace(USERINFO, `$1${REDACTED}@`)
    .replace(SCHEME, `$1$2${REDACTED}`)
    .replace(PAIR, `$1${REDACTED}`)
    .replace(SHAPES, REDACTED);
