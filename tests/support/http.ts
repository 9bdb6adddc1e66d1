import http from 'node:http';

export interface Answer<T = unknown> {
  status: number;
  headers: http.IncomingHttpHeaders;
  /** Parsed where the answer says it is JSON, else the text. */
  body: T;
  text: string;
  durationMs: number;
}

export interface SendOptions {
  method: string;
  url: string;
  /** An array sends the header several times. */
  headers?: Record<string, string | string[] | undefined>;
  /** Strings and buffers go out as they are; anything else as JSON. `undefined`: no body. */
  body?: unknown;
  timeoutMs?: number;
}

const encode = (body: unknown): { bytes?: Buffer; json: boolean } => {
  if (body === undefined) return { json: false };
  if (Buffer.isBuffer(body)) return { bytes: body, json: false };
  if (typeof body === 'string') return { bytes: Buffer.from(body), json: false };
  return { bytes: Buffer.from(JSON.stringify(body)), json: true };
};

const parse = (text: string, contentType = ''): unknown => {
  if (!/\bjson\b/.test(contentType) || text === '') return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

const lowerCased = (headers: SendOptions['headers'] = {}): Record<string, string | string[]> => {
  const result: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) result[name.toLowerCase()] = value;
  }
  return result;
};

/**
 * One request on one connection of its own. Not `fetch`: tests send headers twice, bodies that are
 * no JSON, and talk to servers that are killed in between, where a kept connection only confuses.
 */
export const send = <T = unknown>(options: SendOptions): Promise<Answer<T>> =>
  new Promise((resolve, reject) => {
    const { bytes, json } = encode(options.body);
    const headers = lowerCased(options.headers);
    if (json && headers['content-type'] === undefined) headers['content-type'] = 'application/json';
    if (bytes && headers['transfer-encoding'] === undefined)
      headers['content-length'] ??= String(bytes.length);
    const started = performance.now();
    const request = http.request(
      options.url,
      { method: options.method, headers, agent: false, timeout: options.timeoutMs ?? 60_000 },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: parse(text, response.headers['content-type']) as T,
            text,
            durationMs: performance.now() - started,
          });
        });
      }
    );
    request.on('timeout', () => request.destroy(new Error(`No answer from ${options.url}`)));
    request.on('error', reject);
    request.end(bytes);
  });
