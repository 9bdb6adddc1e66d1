/** Headers that frame the request or sign it: no hook may set them. */
const RESERVED =
  /^(x-service-.*|webhook-.*|host|content-length|transfer-encoding|connection|keep-alive|proxy-.*|te|trailer|upgrade|expect|content-encoding)$/i;

/** Headers whose values are credentials: sent, and shown as `***` in the log. */
const SECRET = /authorization|cookie|token|secret|password|api[-_]?key|access[-_]?key/i;

/**
 * The headers a request-args handler may decide about, out of whatever it returned. Always a JSON
 * content type: the body is signed JSON, whatever a handler says.
 */
export const keepFreeHeaders = (headers: unknown): Record<string, string> => {
  const free: Record<string, string> = {};
  for (const [name, value] of Object.entries((headers ?? {}) as Record<string, unknown>)) {
    if (RESERVED.test(name.trim()) || value === undefined || value === null) continue;
    if (/^content-type$/i.test(name.trim())) continue;
    free[name] = String(value);
  }
  free['Content-Type'] = 'application/json';
  return free;
};

/** Headers as the log keeps them. */
export const redactHeaders = (headers: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, SECRET.test(name) ? '***' : value])
  );
