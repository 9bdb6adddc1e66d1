/** The two halves of an `Authorization: Basic` header. */
export interface BasicCredentials {
  user: string;
  password: string;
}

const SCHEME = /^basic(?:\s|$)/i;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** Longer than any e-mail address and password of ours; nothing beyond is decoded or hashed. */
const MAX_LENGTH = 2048;

export const isBasic = (header: string | undefined): boolean => SCHEME.test(header ?? '');

/**
 * Reads a Basic header (RFC 7617, UTF-8). The first colon divides: a password may hold more of them.
 * @returns null for whatever is no well-formed Basic header.
 */
export const parseBasic = (header: string | undefined): BasicCredentials | null => {
  if (!header || header.length > MAX_LENGTH || !isBasic(header)) return null;
  const encoded = header.slice('basic'.length).trim();
  if (!BASE64.test(encoded)) return null;
  const decoded = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = decoded.indexOf(':');
  if (colon < 1) return null;
  return { user: decoded.slice(0, colon), password: decoded.slice(colon + 1) };
};
