// The rows of the bench about what a shop asks for; bench/index.mjs says what a row is.
import path from 'node:path';
import tillClient from '../till-client/index.js';
import { compare } from './lib/measure.mjs';

const FILE = path.join(import.meta.dirname, 'site/pos.js');
const RECORDS = Number(process.env.BENCH_RECORDS) || 1_000_000;
/** What the large number is compared with. */
const FEW_RECORDS = 10_000;
const ITEMS = Number(process.env.BENCH_ITEMS) || 100_000;
/** Items of a page of the catalogue, the most that there may be. */
const A_PAGE = 1000;
const TIMES = 10;
/** As many days as the fill spreads records over (site/pos.js). */
const REPORT = '/switchboard/sales-days?from=2026-03-01&to=2026-03-30';

const count = (number) => number.toLocaleString('en');

export const rows = ({ rounds, startSite }) => {
  /** Sites, each on a database of its own, with so much in them. */
  const withSites = async (sizes, fill, work) => {
    const options = { pos: { ratePerMinute: 1_000_000, process: false, timeZone: 'UTC' } };
    const sites = [];
    try {
      const filled = [];
      for (const size of sizes) {
        const site = await startSite({ options });
        sites.push(site);
        const run = (op, args = {}) => site.control('run', { file: FILE, args: { op, ...args } });
        filled.push(await fill(site, run, size));
      }
      return await work(...filled);
    } finally {
      await Promise.all(sites.map((site) => site.stop()));
    }
  };

  /** Milliseconds of one report. */
  const report = async (site) => {
    const started = performance.now();
    for (let at = 0; at < TIMES; at += 1) {
      const { status, body } = await site.request('GET', REPORT);
      if (status !== 200 || body.data.length !== 30) throw new Error(`the report: ${status}`);
    }
    return (performance.now() - started) / TIMES;
  };

  /** The answer to a till that asks for a page of the catalogue. */
  const page = async (site, { key, secret }, cursor) => {
    const body = JSON.stringify({ limit: A_PAGE, ...(cursor && { cursor }) });
    const timestamp = String(Math.floor(Date.now() / 1000));
    const response = await fetch(`${site.url}/api/service-pos/v1/catalogue`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-pos-key': key,
        'x-pos-timestamp': timestamp,
        'x-pos-signature': tillClient.sign({ secret, timestamp, body }),
      },
      body,
    });
    if (response.status !== 200) throw new Error(`the catalogue: ${response.status}`);
    return response.json();
  };

  /** Milliseconds of one whole page. */
  const timedPages = async (site, till, cursor) => {
    const started = performance.now();
    for (let at = 0; at < TIMES; at += 1) {
      const { items } = await page(site, till, cursor);
      if (items.length !== A_PAGE) throw new Error(`a page of ${items.length} items`);
    }
    return (performance.now() - started) / TIMES;
  };

  /** Reads it from its beginning. @returns the cursor before its last page. */
  const beforeLastPage = async (site, till) => {
    const skus = new Set();
    let before;
    for (let cursor; ;) {
      const answer = await page(site, till, cursor);
      for (const { sku } of answer.items) skus.add(sku);
      if (answer.items.length === A_PAGE) before = cursor;
      if (!answer.has_more) break;
      cursor = answer.cursor;
    }
    if (skus.size !== ITEMS) throw new Error(`a catalogue of ${skus.size} items`);
    return before;
  };

  return [
    {
      name: 'pos-catalogue',
      what: `the last ${count(A_PAGE)} of ${count(ITEMS)} items of the catalogue; the first ones`,
      unit: 'ms',
      budget: { max: 1.2 },
      run: () =>
        withSites(
          [ITEMS],
          async (site, run, items) => {
            const till = await run('connection');
            await run('stock', { items });
            return { site, till, last: await beforeLastPage(site, till) };
          },
          ({ site, till, last }) =>
            compare(Math.max(9, rounds), {
              value: () => timedPages(site, till, last),
              baseline: () => timedPages(site, till),
            })
        ),
    },
    {
      name: 'pos-day-report',
      what: `a month of sales by day, ${count(RECORDS)} records; ${count(FEW_RECORDS)}`,
      unit: 'ms',
      budget: { max: 1.2 },
      run: () =>
        withSites(
          [FEW_RECORDS, RECORDS],
          async (site, run, size) => {
            await run('connection');
            await run('sell', { records: size });
            await report(site);
            return site;
          },
          (small, large) =>
            compare(Math.max(9, rounds), {
              value: () => report(large),
              baseline: () => report(small),
            })
        ),
    },
  ];
};
