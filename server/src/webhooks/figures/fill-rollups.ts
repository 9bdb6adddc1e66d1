import type { Core } from '@strapi/strapi';
import { getClock } from '../../database/clock';
import { currentExecutor, type Detached, type Executor, table } from '../../database/connection';
import { inRetriedTransaction } from '../../database/retry';
import { SITE_TABLE } from '../../database/site-instance';
import { nextTurn } from '../../runtime/event-loop';
import { errorText } from '../../runtime/text';
import {
  newestDelivery,
  readDeliveriesUpTo,
  readNewestTried,
  type TriedDelivery,
} from '../deliveries/again';
import { newestAttempt } from '../deliveries/attempts';
import { continueSpell, type Spell } from '../rules/failing';
import { type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import { addToRollups, type RolledAttempt } from './rollups';

/** Deliveries whose attempts are looked at, of the newest of a webhook. */
const LOOKED_AT = { among: 1000, limit: 50 };

/** How a webhook did by its latest attempts, whichever of its deliveries they were of. */
const spellOfLog = async (
  strapi: Core.Strapi,
  executor: Executor,
  webhook: number
): Promise<Spell> => {
  const deliveries = await readNewestTried(strapi, executor, webhook, LOOKED_AT);
  const attempts = deliveries
    .filter(({ isForeign }) => !isForeign)
    .flatMap((delivery) => delivery.attempts)
    .sort((a, b) => a.at - b.at);
  return continueSpell({ attempted: false, unwellSince: null }, attempts);
};

/**
 * Says of webhooks of earlier versions how their last attempts went; later attempts keep it. What a
 * webhook's row knows already is left alone, so it may be done again, and by two nodes at once.
 */
const settleFirstHealth = async (strapi: Core.Strapi): Promise<void> => {
  const executor = await currentExecutor(strapi);
  const webhooks = () => table(strapi, executor, WEBHOOKS_TABLE);
  const unknown = (await webhooks()
    .select('id', 'failing_since', 'attempted')
    .orderBy('id')) as Pick<WebhookRow, 'id' | 'failing_since' | 'attempted'>[];
  for (const { id, failing_since: since, attempted: known } of unknown) {
    if (known) continue;
    const { attempted, unwellSince } = await spellOfLog(strapi, executor, Number(id));
    // The log that was looked at may not reach back to the first failure; the row may.
    const first = unwellSince === null ? null : Math.min(unwellSince, Number(since ?? unwellSince));
    if (attempted) {
      await webhooks()
        .where({ id })
        .whereNull('attempted')
        .update({ attempted, unwell_since: first });
    }
    await nextTurn();
  }
};

/**
 * Rollups of what earlier versions recorded. The log is walked once, newest first, up to where it
 * stood before this version recorded anything; each step counts some deliveries and notes how far
 * it came in one transaction. So it may be interrupted anywhere, and nothing counts twice.
 */

/** The newest that is left to be counted of what was there, and the time that was reached. */
interface Progress {
  delivery: number;
  /** Attempts behind this one were counted as they were recorded. */
  attempt: number;
  /** What was made at this time or later is counted; epoch milliseconds. 0: everything is. */
  reached: number;
}

const MARK = { name: 'rollups' };
/** Their attempts may be read from text, which holds the event loop. */
const AT_ONCE = 50;
/** As far back as screens look. */
const REACH_MS = 31 * 86_400_000;

const marks = (strapi: Core.Strapi, executor: Executor) =>
  table(strapi, executor, SITE_TABLE).where(MARK);

const written = ({ delivery, attempt, reached }: Progress): string =>
  [delivery, attempt, reached].join('/');

const parsed = (row: { value: string } | undefined): Progress | null => {
  if (!row) return null;
  const [delivery = 0, attempt = 0, reached = 0] = row.value.split('/').map(Number);
  return { delivery, attempt, reached };
};

const readProgress = async (strapi: Core.Strapi): Promise<Progress | null> =>
  parsed((await marks(strapi, await currentExecutor(strapi)).first()) as { value: string });

/**
 * Notes, at the first boot of a version that keeps rollups and before it sends, where the log
 * stands. Of nodes that boot at once the first one's note counts: none sends before there is one.
 */
export const prepareRollups = async (strapi: Core.Strapi): Promise<void> => {
  if (await readProgress(strapi)) return;
  await settleFirstHealth(strapi);
  const executor = await currentExecutor(strapi);
  const delivery = await newestDelivery(strapi, executor);
  const attempt = await newestAttempt(strapi, executor);
  const reached = delivery === 0 ? 0 : getClock(strapi).now();
  const value = written({ delivery, attempt, reached });
  await table(strapi, executor, SITE_TABLE)
    .insert({ ...MARK, value })
    .onConflict('name')
    .ignore();
};

/** Since when rollups say everything, epoch milliseconds; 0: for as long as they are kept. */
export const rollupsSince = async (strapi: Core.Strapi): Promise<number> =>
  (await readProgress(strapi))?.reached ?? getClock(strapi).now();

const attemptsOf = (
  { webhook, failed, isForeign, attempts }: TriedDelivery,
  upTo: number,
  since: number
): RolledAttempt[] => {
  if (isForeign) return [];
  // Sent again by hand in vain, a delivery has a later attempt than the one that ended it.
  const last = attempts.filter(({ manual }) => !manual).at(-1) ?? attempts.at(-1);
  return attempts
    .filter(({ id, at }) => (id === null || id <= upTo) && at >= since)
    .map((attempt) => {
      const gaveUp = failed && attempt === last;
      const ended = attempt.ok ? 'sent' : gaveUp ? 'failed' : null;
      return {
        webhookId: webhook,
        at: attempt.at,
        ok: attempt.ok,
        ended,
        answeredIn: attempt.answeredIn,
      };
    });
};

/** @returns whether there is more to do. */
const fillSome = (strapi: Core.Strapi): Promise<boolean> =>
  inRetriedTransaction(strapi, async ({ trx }) => {
    // On SQLite nothing is locked: there is one writer.
    const progress = parsed((await marks(strapi, trx).forUpdate().first()) as { value: string });
    if (!progress || progress.reached === 0) return false;
    const since = getClock(strapi).now() - REACH_MS;
    const found = await readDeliveriesUpTo(strapi, trx, progress.delivery, AT_ONCE);
    const rolled = found.flatMap((one) => attemptsOf(one, progress.attempt, since));
    await addToRollups(strapi, trx, rolled);
    const oldest = found.at(-1);
    const isOver = !oldest || found.length < AT_ONCE || oldest.at < since;
    const next = isOver
      ? { ...progress, reached: 0 }
      : { ...progress, delivery: oldest.id - 1, reached: Math.min(progress.reached, oldest.at) };
    await marks(strapi, trx).update({ value: written(next) });
    return !isOver;
  });

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));

export interface RollupFill {
  /** Goes on until all is done. Never throws: the next call tries again. */
  run(): Promise<void>;
  stop(): Promise<void>;
}

export const createRollupFill = (strapi: Core.Strapi, detached: Detached): RollupFill => {
  let stopped = false;
  let isDone = false;
  let told = false;
  let running: Promise<void> | null = null;
  const fill = async (): Promise<void> => {
    try {
      while (!stopped && !isDone) {
        isDone = !(await fillSome(strapi));
        if (!isDone) await pause();
      }
    } catch (error) {
      // Tried again every few seconds: said once.
      if (!told)
        strapi.log.error(
          `switchboard: the figures of earlier deliveries could not be counted: ${errorText(error)}`
        );
      told = true;
    }
    running = null;
  };
  return {
    async run() {
      if (isDone || stopped) return;
      running ??= detached(fill);
      await running;
    },
    async stop() {
      stopped = true;
      await running;
    },
  };
};
