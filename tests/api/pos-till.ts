import { randomUUID } from 'node:crypto';
import { generateSecret } from '../../server/src/pos/rules/credentials';
import { signBody } from '../support/till-signature';
import { type Answer, send } from '../support/http';
import type { Site } from '../support/site';
import { waitFor } from '../support/wait';

export const BASE = '/api/service-pos/v1';

/* eslint-disable @typescript-eslint/no-explicit-any -- answers are what the tests are about */
type Json = any;
/* eslint-enable @typescript-eslint/no-explicit-any */

export interface SendChanges {
  headers?: Record<string, string | string[] | undefined>;
  /** Unix seconds; now if left out. */
  timestamp?: number | string;
  secret?: string;
  path?: string;
  method?: string;
  /** Another process on the same database. */
  to?: Site;
}

/** A till of a test: sends signed bytes. */
export class Till {
  constructor(
    readonly site: Site,
    readonly id: number,
    readonly key: string,
    public secret: string
  ) {}

  send(kind: string, body: unknown, changes: SendChanges = {}): Promise<Answer<Json>> {
    const bytes = Buffer.isBuffer(body)
      ? body
      : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
    const timestamp = String(changes.timestamp ?? Math.floor(Date.now() / 1000));
    return send<Json>({
      method: changes.method ?? 'POST',
      url: `${(changes.to ?? this.site).url}${changes.path ?? `${BASE}/${kind}`}`,
      headers: {
        'content-type': 'application/json',
        'x-pos-key': this.key,
        'x-pos-timestamp': timestamp,
        'x-pos-signature': signBody(changes.secret ?? this.secret, timestamp, bytes),
        ...changes.headers,
      },
      body: bytes,
    });
  }

  sale(lines: [sku: string, quantity: number][], more: Record<string, unknown> = {}) {
    return this.send('sale', saleBody(lines, more));
  }

  refund(saleId: string, more: Record<string, unknown> = {}) {
    return this.send('refund', {
      external_id: randomUUID(),
      sale_external_id: saleId,
      occurred_at: isoAgo(0),
      ...more,
    });
  }

  count(lines: [sku: string, quantity: number][], more: Record<string, unknown> = {}) {
    return this.send('inventory', {
      external_id: randomUUID(),
      occurred_at: isoAgo(0),
      mode: 'absolute',
      counts: lines.map(([sku, quantity]) => ({ sku, quantity })),
      ...more,
    });
  }
}

export const isoAgo = (seconds: number): string =>
  new Date(Date.now() - seconds * 1000).toISOString();

export const saleBody = (
  lines: [sku: string, quantity: number][],
  more: Record<string, unknown> = {}
): Record<string, unknown> => ({
  external_id: randomUUID(),
  occurred_at: isoAgo(0),
  currency: 'GBP',
  total: 100,
  line_items: lines.map(([sku, quantity]) => ({ sku, quantity })),
  ...more,
});

const expectStatus = (answer: Answer<Json>, status: number): Json => {
  if (answer.status !== status)
    throw new Error(`${answer.status} instead of ${status}: ${answer.text}`);
  return answer.body.data;
};

export const admin = async (
  site: Site,
  method: string,
  path: string,
  body?: unknown,
  status = method === 'POST' ? 201 : 200
): Promise<Json> =>
  expectStatus(await site.request(method, `/switchboard${path}`, { body }), status);

export const createTill = async (site: Site, more: Record<string, unknown> = {}): Promise<Till> => {
  const connection = await admin(site, 'POST', '/connections', {
    name: 'Till 1',
    scopes: ['sale:write', 'refund:write', 'inventory:write'],
    mode: 'live',
    locations: [],
    ...more,
  });
  return new Till(site, connection.id, connection.key, connection.secret);
};

export const createItem = (
  site: Site,
  sku: string,
  quantity = 0,
  more: Record<string, unknown> = {}
): Promise<Json> => admin(site, 'POST', '/items', { sku, opening: [{ quantity }], ...more });

export const levelOf = async (
  site: Site,
  sku: string,
  location = ''
): Promise<number | undefined> => {
  const query = `sku=${encodeURIComponent(sku)}${location && `&location=${location}`}`;
  const levels = await admin(site, 'GET', `/levels?${query}`);
  return levels[0]?.quantity;
};

export const eventOf = (site: Site, id: number): Promise<Json> =>
  admin(site, 'GET', `/pos-events/${id}`);

/** Resolves with the event once it is in this state. */
export const settled = (site: Site, id: number, state: string, timeout = 30_000): Promise<Json> =>
  waitFor(
    async () => {
      const event = await eventOf(site, id);
      if (event.state !== state) throw new Error(`event ${id} is ${event.state}: ${event.error}`);
      return event;
    },
    timeout,
    `event ${id} to be ${state}`
  );

/** Resolves once nothing is pending any more. */
export const allProcessed = (site: Site, timeout = 60_000): Promise<unknown> =>
  waitFor(
    async () => (await admin(site, 'GET', '/pos-events?state=pending&per_page=1')).length === 0,
    timeout,
    'all events to be processed'
  );

export const rebuild = (site: Site): Promise<Json> =>
  admin(site, 'POST', '/levels/rebuild', {}, 200);

export const otherSecret = (): string =>
  generateSecret((size) => Uint8Array.from({ length: size }, (_value, index) => index + 1));
