import { setTimeout as pause } from 'node:timers/promises';
import { median, percentile } from '../lib/measure.mjs';
import { startPoster } from '../lib/poster.mjs';
import { labelsOf, paceFor, visit } from '../lib/visit.mjs';

const EVENT = 'bench.event';
const SECONDS = 4;
/** Not counted: the first requests after a collection of garbage compile again what they need. */
const UNCOUNTED = 1;
/** Fewer say more of the machine, and of the moments at which it collects garbage, than of the site. */
const TURNS = 9;
/** Of the site's time, taken by visitors: more would wait for each other, with nothing to send too. */
const SHARE = 1 / 3;
/** More than can be sent in that time. */
const BACKLOG = 25_000;
/** About what a delivery weighs. */
const BYTES = 700;
/** Until a process has compiled what it does again and again. */
const WARM_MS = 1500;

/** The p99 of requests by turns: idle, while deliveries go out, and while another process posts as many. */
const measure = async ({ site, inSite, receiver, rounds }) => {
  const options = labelsOf(await site());
  await paceFor(options, SHARE);
  const pace = await paceFor(options, SHARE);
  /** A few seconds of requests. @returns the p99 of their milliseconds. */
  const visitShortly = async () => {
    await visit(options, (seconds) => seconds < UNCOUNTED, pace);
    return percentile(await visit(options, (seconds) => seconds < SECONDS, pace), 0.99);
  };
  const { url, reset, count } = await receiver();
  const ids = await inSite('webhooks', { op: 'create', url, event: EVENT });
  const whileSending = async () => {
    // All of it queued before, and what that left thrown away: what is measured is sending, not a bulk write.
    await inSite('backlog', { op: 'fill', event: EVENT, count: BACKLOG });
    await inSite('backlog', { op: 'tidy' });
    await reset();
    const p99 = await visitShortly();
    const rate = (await count()) / (UNCOUNTED + SECONDS);
    const left = await inSite('backlog', { op: 'left', webhookIds: ids });
    await inSite('backlog', { op: 'drop', webhookIds: ids });
    if (left === 0) throw new Error('the deliveries ended before the requests');
    return { p99, rate };
  };
  const whileAnotherPosts = async (rate) => {
    const stop = await startPoster({ url, rate, bytes: BYTES });
    await pause(WARM_MS);
    return visitShortly().finally(stop);
  };
  try {
    await visitShortly();
    await whileSending();
    const turns = [];
    while (turns.length < Math.max(rounds, TURNS)) {
      await inSite('backlog', { op: 'tidy' });
      const idle = await visitShortly();
      const { p99: sending, rate } = await whileSending();
      turns.push({ idle, sending, rate, pace, other: await whileAnotherPosts(rate) });
    }
    return turns;
  } finally {
    await inSite('webhooks', { op: 'remove', ids });
  }
};

export const rows = (context) => {
  let measured;
  const compared = async (against) => {
    measured ??= measure(context);
    const turns = await measured;
    return {
      value: median(turns.map(({ sending }) => sending)),
      baseline: median(turns.map((turn) => turn[against])),
      ratio: median(turns.map((turn) => turn.sending / turn[against])),
      note: `${Math.round(turns[0].pace)} requests and ${Math.round(median(turns.map(({ rate }) => rate)))} deliveries a second`,
    };
  };
  return [
    {
      name: 'site-get',
      what: 'GET of the site, p99, while deliveries run flat out; idle',
      unit: 'ms',
      budget: { max: 1.3 },
      run: () => compared('idle'),
    },
    {
      name: 'site-get-posting',
      what: 'the same; while another process posts as many a second with bare got',
      unit: 'ms',
      budget: { max: 1.2 },
      run: () => compared('other'),
    },
  ];
};
