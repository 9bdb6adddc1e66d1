import { validateHeaderName, validateHeaderValue } from 'node:http';

/** Framing and routing belong to the client: a wrong one is a request of somebody else's making. */
const OWN_HEADERS = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'proxy-connection',
  'upgrade',
  'expect',
  'te',
  'trailer',
]);

export type PreparedHeaders =
  { ok: true; headers: Record<string, string> } | { ok: false; message: string };

/**
 * Makes sendable headers of what extension hooks may have left. Null and undefined values are left
 * out, numbers and booleans written as text; what HTTP does not allow is named, not thrown.
 */
export function prepareHeaders(input: unknown): PreparedHeaders {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    return { ok: false, message: 'The request headers are not an object.' };
  }
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(input as Record<string, unknown>)) {
    const lower = name.toLowerCase();
    if (value === undefined || value === null || OWN_HEADERS.has(lower)) continue;
    if (!isSendable(lower, value)) {
      return { ok: false, message: `The request header ${printable(name)} is not valid.` };
    }
    headers[lower] = String(value);
  }
  return { ok: true, headers };
}

function isSendable(name: string, value: unknown): boolean {
  // HTTP would take it, an object's own key it cannot be.
  if (name === '__proto__' || !['string', 'number', 'boolean'].includes(typeof value)) return false;
  try {
    validateHeaderName(name);
    validateHeaderValue(name, String(value));
    return true;
  } catch {
    return false;
  }
}

const printable = (name: string): string =>
  JSON.stringify(name.slice(0, 64).replace(/[^\x20-\x7e]/g, '?'));
