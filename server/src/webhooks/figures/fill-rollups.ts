import type { Detached } from '../../database/connection';
import { SITE_TABLE } from '../../database/site';
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
import type { App } from '../../app';
import type { Db } from '../../database/db';

/** Deliveries whose attempts are looked at, of the newest of a webhook. */
const LOOKED_AT = { among: 1000, limit: 50 };

/** How a webhook did by its latest attempts, whichever of its deliveries they were of. */
const spellOfLog = async (db: Db, webhook: number): Promise<Spell> => {
  const deliveries = await readNewestTried(db, webhook, LOOKED_AT);
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
const settleFirstHealth = async (app: App): Promise<void> => {
  const db = await app.db.current();
  const webhooks = () => db.table(WEBHOOKS_TABLE);
  const unknown = (await webhooks()
    .select('id', 'failing_since', 'attempted')
    .orderBy('id')) as Pick<WebhookRow, 'id' | 'failing_since' | 'attempted'>[];
  for (const { id, failing_since: since, attempted: known } of unknown) {
    if (known) continue;
    const { attempted, unwellSince } = await spellOfLog(db, Number(id));
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

const marks = (db: Db) => db.table(SITE_TABLE).where(MARK);

const written = ({ delivery, attempt, reached }: Progress): string =>
  [delivery, attempt, reached].join('/');

const parsed = (row: { value: string } | undefined): Progress | null => {
  if (!row) return null;
  const [delivery = 0, attempt = 0, reached = 0] = row.value.split('/').map(Number);
  return { delivery, attempt, reached };
};

const readProgress = async (app: App): Promise<Progress | null> =>
  parsed((await marks(await app.db.current()).first()) as { value: string });

/**
 * Notes, at the first boot of a version that keeps rollups and before it sends, where the log
 * stands. Of nodes that boot at once the first one's note counts: none sends before there is one.
 */
export const prepareRollups = async (app: App): Promise<void> => {
  if (await readProgress(app)) return;
  await settleFirstHealth(app);
  const db = await app.db.current();
  const delivery = await newestDelivery(db);
  const attempt = await newestAttempt(db);
  const reached = delivery === 0 ? 0 : app.clock.now();
  const value = written({ delivery, attempt, reached });
  await db
    .table(SITE_TABLE)
    .insert({ ...MARK, value })
    .onConflict('name')
    .ignore();
};

/** Since when rollups say everything, epoch milliseconds; 0: for as long as they are kept. */
export const rollupsSince = async (app: App): Promise<number> =>
  (await readProgress(app))?.reached ?? app.clock.now();

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
const fillSome = (app: App): Promise<boolean> =>
  app.db.retrying(async (tx) => {
    // On SQLite nothing is locked: there is one writer.
    const progress = parsed((await marks(tx).forUpdate().first()) as { value: string });
    if (!progress || progress.reached === 0) return false;
    const since = app.clock.now() - REACH_MS;
    const found = await readDeliveriesUpTo(tx, progress.delivery, AT_ONCE);
    const rolled = found.flatMap((one) => attemptsOf(one, progress.attempt, since));
    await addToRollups(tx, rolled);
    const oldest = found.at(-1);
    const isOver = !oldest || found.length < AT_ONCE || oldest.at < since;
    const next = isOver
      ? { ...progress, reached: 0 }
      : { ...progress, delivery: oldest.id - 1, reached: Math.min(progress.reached, oldest.at) };
    await marks(tx).update({ value: written(next) });
    return !isOver;
  });

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));

export class RollupFill {
  private stopped = false;
  private isDone = false;
  private told = false;
  private running: Promise<void> | null = null;

  constructor(
    private readonly app: App,
    private readonly detached: Detached
  ) {}

  /** Goes on until all is done. Never throws: the next call tries again. */
  async run(): Promise<void> {
    if (this.isDone || this.stopped) return;
    this.running ??= this.detached(() => this.fill());
    await this.running;
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.running;
  }

  private async fill(): Promise<void> {
    try {
      while (!this.stopped && !this.isDone) {
        this.isDone = !(await fillSome(this.app));
        if (!this.isDone) await pause();
      }
    } catch (error) {
      // Tried again every few seconds: said once.
      if (!this.told)
        this.app.log.error(
          `switchboard: the figures of earlier deliveries could not be counted: ${errorText(error)}`
        );
      this.told = true;
    }
    this.running = null;
  }
}
