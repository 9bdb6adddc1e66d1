import { compare, percentile } from '../lib/measure.mjs';
import { labelsOf, visit } from '../lib/visit.mjs';

const ROWS = 100_000;
const IDLE_SECONDS = 10;
/** Rows between an address and its next mention: more than a batch. */
const LATER = 1000;

/** Half of the rows are new, a quarter says what is known, a quarter changes something. */
const lineAt = (at) => {
  const turn = at < LATER ? 0 : at % 4;
  if (turn < 2) return `bench${at}@example.test,Grace,Hopper ${at},+1 555 0100,${at % 100},bench`;
  const earlier = at - LATER - 2;
  if (turn === 2) return `bench${earlier}@example.test,Grace,Hopper ${earlier},,,bench`;
  return `bench${earlier}@example.test,,,+1 555 ${at},,`;
};

const file = () => {
  const lines = Array.from({ length: ROWS }, (_none, at) => lineAt(at));
  return Buffer.from(['email,first_name,last_name,phone,score,tags', ...lines, ''].join('\n'));
};

const runImport = async (site) => {
  const started = performance.now();
  const { status, body, text } = await site.request('POST', '/switchboard/contacts/import', {
    body: file(),
    headers: { 'content-type': 'text/csv' },
    timeoutMs: 1_800_000,
  });
  if (status !== 200 || body.data.failed > 0) throw new Error(`the import answered ${text}`);
  return (ROWS / (performance.now() - started)) * 1000;
};

export const rows = ({ startSite }) => [
  {
    name: 'import',
    what: `GET of the site, p99, while ${ROWS} contacts are imported; idle`,
    unit: 'ms',
    async run() {
      // Contacts of the plugin's own, and nothing sent: both halves are about the import alone.
      const site = await startSite({ options: { sources: {}, webhooks: { dispatch: false } } });
      try {
        const webhook = { name: 'bench', url: 'http://127.0.0.1:9/', events: ['contact.created'] };
        await site.request('POST', '/api/fw-crm/v1/webhooks', { body: webhook });
        const options = labelsOf(site);
        const idle = () => visit(options, (seconds) => seconds < IDLE_SECONDS);
        await idle();
        let speed = 0;
        let longest = 0;
        // One round: an import is long enough for a thousand requests and more.
        const result = await compare(1, {
          async value() {
            let isDone = false;
            const importing = runImport(site).finally(() => {
              isDone = true;
            });
            const [times, measured] = await Promise.all([visit(options, () => !isDone), importing]);
            speed = measured;
            longest = Math.max(...times);
            return percentile(times, 0.99);
          },
          baseline: async () => percentile(await idle(), 0.99),
        });
        const note = `${Math.round(speed)} rows/s; the longest GET took ${Math.round(longest)} ms`;
        return { ...result, note };
      } finally {
        await site.stop();
      }
    },
  },
];
