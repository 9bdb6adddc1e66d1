// The point-of-sale rows of the bench; bench/index.mjs says what a row is.
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { flood } from './lib/flood.mjs';
import { compare } from './lib/measure.mjs';
import tillClient from '../till-client/index.js';

const SITE_MODULES = path.join(import.meta.dirname, 'site');
const COUNT = 1500;
const A_BATCH = 100;
const POS = '/api/service-pos/v1';

const saleOf = (sku) =>
  Buffer.from(
    JSON.stringify({
      external_id: randomUUID(),
      occurred_at: new Date().toISOString(),
      currency: 'GBP',
      total: 1798,
      line_items: [{ sku, quantity: 1, unit_price: 899 }],
      meta: { cashier: 'Ada' },
    })
  );

/** Requests ready to go: what signing costs the sender is not the site's. */
const prepare = ({ key, secret }, bodies) => {
  const timestamp = String(Math.floor(Date.now() / 1000));
  return bodies.map((body) => ({
    body,
    headers: {
      'content-type': 'application/json',
      'content-length': body.length,
      'x-pos-key': key,
      'x-pos-timestamp': timestamp,
      'x-pos-signature': tillClient.sign({ secret, timestamp, body }),
    },
  }));
};

export const rows = ({ rounds, startSite }) => {
  const inSite = (site, args) =>
    site.control('run', { file: path.join(SITE_MODULES, 'pos.js'), args });

  /** A site with a till; `process: false` where only accepting is measured. */
  const withTill = async (process, work) => {
    const site = await startSite({
      setupFiles: [path.join(SITE_MODULES, 'setup.js'), path.join(SITE_MODULES, 'post-routes.js')],
      options: { pos: { ratePerMinute: 1_000_000, process } },
    });
    try {
      const till = await inSite(site, { op: 'connection' });
      return await work(site, till);
    } finally {
      await site.stop();
    }
  };

  const sales = (till, count, skuOf = () => 'BENCH-0') =>
    prepare(
      till,
      Array.from({ length: count }, (_, at) => saleOf(skuOf(at)))
    );

  const batches = (till, count) =>
    prepare(
      till,
      Array.from({ length: count }, () => {
        const bodies = Array.from({ length: A_BATCH }, () => saleOf('BENCH-0'));
        return Buffer.from(
          `{"records":[${bodies.map((body) => `{"kind":"sale","body":${body}}`).join(',')}]}`
        );
      })
    );

  return [
    {
      name: 'pos-accept',
      what: "sales accepted; a route of the same Strapi that checks a token and writes one row of the host's own",
      unit: '/s',
      budget: { min: 0.9 },
      run: () =>
        withTill(false, async (site, till) => {
          await inSite(site, { op: 'fill', prefix: 'BENCH', items: 1, movements: 0 });
          const authorization = `Bearer ${site.apiToken}`;
          const rowsOf = (count) =>
            sales(till, count).map(({ body, headers }) => ({
              body,
              headers: { ...headers, authorization },
            }));
          await flood(site, '/api/bench-row', rowsOf(500), 202);
          await flood(site, `${POS}/sale`, sales(till, 500), 202);
          return compare(rounds, {
            value: () => flood(site, `${POS}/sale`, sales(till, COUNT), 202),
            baseline: () => flood(site, '/api/bench-row', rowsOf(COUNT), 202),
          });
        }),
    },
    {
      name: 'pos-duplicates',
      what: 'repeats answered; first sends accepted',
      unit: '/s',
      budget: { min: 1 },
      run: () =>
        withTill(false, async (site, till) => {
          await flood(site, `${POS}/sale`, sales(till, 500), 202);
          let sent = sales(till, COUNT);
          await flood(site, `${POS}/sale`, sent, 202);
          return compare(rounds, {
            value: () => flood(site, `${POS}/sale`, sent, 200),
            baseline: () => {
              sent = sales(till, COUNT);
              return flood(site, `${POS}/sale`, sent, 202);
            },
          });
        }),
    },
    {
      name: 'pos-batch',
      what: 'sales accepted in batches of 100; one by one',
      unit: 'records/s',
      budget: { min: 4 },
      run: () =>
        withTill(false, async (site, till) => {
          await flood(site, `${POS}/sale`, sales(till, 500), 202);
          await flood(site, `${POS}/batch`, batches(till, 5), 200);
          return compare(rounds, {
            value: async () =>
              (await flood(site, `${POS}/batch`, batches(till, COUNT / A_BATCH), 200)) * A_BATCH,
            baseline: () => flood(site, `${POS}/sale`, sales(till, COUNT), 202),
          });
        }),
    },
    {
      name: 'pos-applied',
      what: 'sales accepted and applied to the ledger; accepted alone',
      unit: '/s',
      run: () =>
        withTill(true, async (site, till) => {
          await inSite(site, { op: 'fill', prefix: 'BENCH', items: 20, movements: 0 });
          const skuOf = (at) => `BENCH-${at % 20}`;
          await flood(site, `${POS}/sale`, sales(till, 500, skuOf), 202);
          const accepted = [];
          const result = await compare(rounds, {
            async value() {
              const started = performance.now();
              accepted.push(await flood(site, `${POS}/sale`, sales(till, COUNT, skuOf), 202));
              await inSite(site, { op: 'drain' });
              return (COUNT / (performance.now() - started)) * 1000;
            },
            baseline: () =>
              accepted.at(-1) ?? flood(site, `${POS}/sale`, sales(till, COUNT, skuOf), 202),
          });
          return result;
        }),
    },
    {
      name: 'pos-ledger',
      what: 'sales applied with 1,000 items and 1,000,000 movements; with 10 and 1,000',
      unit: '/s',
      run: () =>
        withTill(true, async (site, till) => {
          await inSite(site, { op: 'fill', prefix: 'SMALL', items: 10, movements: 1000 });
          await inSite(site, { op: 'fill', prefix: 'LARGE', items: 1000, movements: 1_000_000 });
          const applied = async (prefix, items) => {
            const requests = sales(till, COUNT, (at) => `${prefix}-${at % items}`);
            const started = performance.now();
            await flood(site, `${POS}/sale`, requests, 202);
            await inSite(site, { op: 'drain' });
            return (COUNT / (performance.now() - started)) * 1000;
          };
          await applied('SMALL', 10);
          return compare(rounds, {
            value: () => applied('LARGE', 1000),
            baseline: () => applied('SMALL', 10),
          });
        }),
    },
  ];
};
