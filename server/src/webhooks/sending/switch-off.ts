import type { Knex } from 'knex';
import type { Webhook } from '../../../../shared/contracts/webhooks';
import { documentsOf } from '../../database/tables/internal-types';
import { TimeSlice } from '../../runtime/event-loop';
import { errorText, isoTime } from '../../runtime/text';
import type { TurnEvent, WebhookTurn } from '../catalogue';
import { getPublisher } from '../publish';
import { refusalOf, storedFilter } from '../rules/data-filter';
import {
  continueFailing,
  continueSpell,
  type CountedAttempt,
  type Failing,
  type Spell,
  type SwitchOffLimits,
} from '../rules/failing';
import { forgetSubscriptions } from '../subscriptions';
import { WEBHOOK, type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import { spellOf, toWebhook, UNFIT_FILTER } from '../webhook';
import type { App, Slot } from '../../app';
import type { Tx } from '../../database/db';

interface EmailService {
  send(message: { to: string; subject: string; text: string }): Promise<void>;
}

interface OwnersMail {
  /** What it is about, as the log says it where the mail cannot be sent: `a webhook`. */
  about: string;
  subject: string;
  text: string;
}

/**
 * Writes to the address of the option `webhooks.notifyEmail`, where there is one; does not wait for it
 * and never throws.
 */
export const mailOwner = (app: App, { about, subject, text }: OwnersMail): void => {
  const to = app.options.webhooks.notifyEmail;
  if (!to) return;
  const email = app.strapi.plugin('email')?.service('email') as EmailService | undefined;
  email?.send({ to, subject, text }).catch((error: unknown) => {
    app.log.error(`switchboard: the mail about ${about} could not be sent: ${errorText(error)}`);
  });
};

/** An attempt that was recorded, in the order of their ends. */
export interface WebhookAttempt extends CountedAttempt {
  webhookId: number;
  /** Why it failed; null: it did not. */
  cause: string | null;
  /** It told of another webhook, by `webhook.failing` and the like. */
  isAlarm: boolean;
}

/** What is to be told of a webhook. */
interface TurnedWebhook {
  turn: WebhookTurn;
  webhook: Webhook;
  reason: string;
}

/**
 * A receiver to which nothing but alarms succeeds is not taken for well before that: else two that fail
 * now and then would tell each other of it for ever.
 */
const ALARM_MS = 600_000;

const isWell = (alarmedAt: number, attempts: readonly WebhookAttempt[]): boolean =>
  attempts.some(({ ok, isAlarm, at }) => ok && (!isAlarm || at - alarmedAt >= ALARM_MS));

const recovered = (row: WebhookRow): TurnedWebhook => ({
  turn: 'recovered',
  webhook: toWebhook(row),
  reason: 'Attempts succeed again.',
});

/** Once a spell: whoever has locked the row and finds it so tells it. */
const turnOf = (
  row: WebhookRow,
  { unwellSince }: Spell,
  attempts: readonly WebhookAttempt[]
): TurnedWebhook | null => {
  if (unwellSince === null) {
    const isOver = row.alarmed_at !== null && isWell(Number(row.alarmed_at), attempts);
    return isOver ? recovered(row) : null;
  }
  if (row.alarmed_at !== null) return null;
  const cause = attempts.findLast(({ ok }) => !ok)?.cause ?? 'unknown';
  const reason = `Attempts fail since ${isoTime(unwellSince)}: ${cause}.`;
  return { turn: 'failing', webhook: toWebhook(row), reason };
};

const byWebhook = (attempts: readonly WebhookAttempt[]): Map<number, WebhookAttempt[]> => {
  const groups = new Map<number, WebhookAttempt[]>();
  for (const attempt of attempts) {
    const own = groups.get(attempt.webhookId);
    if (own) own.push(attempt);
    else groups.set(attempt.webhookId, [attempt]);
  }
  return groups;
};

const failingOf = (row: WebhookRow): Failing => ({
  consecutiveFailures: Number(row.consecutive_failures ?? 0),
  failedAttempts: Number(row.failed_attempts ?? 0),
  failingSince: row.failing_since === null ? null : Number(row.failing_since),
});

/** What a webhook's row keeps of its attempts. */
type Kept = Failing & Spell & { alarmedAt: number | null };

/** One statement, however many webhooks fail. */
const storeFailing = async (
  tx: Tx,
  counts: readonly (readonly [id: number, kept: Kept])[]
): Promise<void> => {
  const column = (name: string, valueOf: (kept: Kept) => number | null): Knex.Raw =>
    tx.raw(`CASE id ${counts.map(() => 'WHEN ? THEN ?').join(' ')} ELSE ?? END`, [
      ...counts.flatMap(([id, kept]) => [id, valueOf(kept)]),
      name,
    ] as Knex.RawBinding[]);
  await tx
    .table(WEBHOOKS_TABLE)
    .whereIn(
      'id',
      counts.map(([id]) => id)
    )
    .update({
      consecutive_failures: column('consecutive_failures', (one) => one.consecutiveFailures),
      failed_attempts: column('failed_attempts', (one) => one.failedAttempts),
      failing_since: column('failing_since', (one) => one.failingSince),
      attempted: true,
      unwell_since: column('unwell_since', (one) => one.unwellSince),
      alarmed_at: column('alarmed_at', (one) => one.alarmedAt),
    });
};

/** Begins the counts of webhooks anew whose attempts all succeeded. */
const storeWell = async (
  tx: Tx,
  rows: readonly WebhookRow[],
  groups: ReadonlyMap<number, readonly WebhookAttempt[]>
): Promise<TurnedWebhook[]> => {
  if (rows.length === 0) return [];
  const store = (some: readonly WebhookRow[], changes: object): Promise<number> =>
    tx
      .table(WEBHOOKS_TABLE)
      .whereIn(
        'id',
        some.map(({ id }) => id)
      )
      .update(changes);
  const none = { consecutive_failures: 0, failed_attempts: 0, failing_since: null };
  await store(rows, { ...none, attempted: true, unwell_since: null });
  const over = rows.filter(
    ({ id, alarmed_at: at }) => at !== null && isWell(Number(at), groups.get(Number(id)) ?? [])
  );
  if (over.length > 0) await store(over, { alarmed_at: null });
  return over.map((row) => recovered({ ...row, ...none }));
};

/**
 * Goes on counting what fails of each webhook and switches off those that have failed too often or
 * for too long, within the transaction that records the attempts, so each counts exactly once on any
 * number of nodes. Keeps the webhooks' health, too. An attempt that succeeded writes nothing where the
 * one before did. docs/contract-webhooks.md#switching-off, docs/contract-webhooks.md#health.
 * @param locked the webhooks for which something changes, by their ids and in the order of those
 * @returns the webhooks that this call switched off, that fail from now on, and that do not any more.
 */
export const countAttempts = async (
  tx: Tx,
  app: App,
  attempts: readonly WebhookAttempt[],
  locked: ReadonlyMap<number, WebhookRow>,
  limits: SwitchOffLimits
): Promise<TurnedWebhook[]> => {
  const groups = byWebhook(attempts);
  const fails = ({ id }: WebhookRow): boolean =>
    groups.get(Number(id))?.some(({ ok }) => !ok) ?? false;
  const counted = [...locked.values()].filter(({ id }) => groups.has(Number(id)));
  const well = counted.filter((row) => !fails(row));
  const rows = counted.filter(fails);
  const turned = await storeWell(tx, well, groups);
  const judged = rows.map((row) => ({
    row,
    spell: continueSpell(spellOf(row), groups.get(Number(row.id)) ?? []),
    ...continueFailing(failingOf(row), groups.get(Number(row.id)) ?? [], limits),
  }));
  if (judged.length === 0) return turned;
  const turns = new Map(
    judged.flatMap(({ row, spell }) => {
      const turn = turnOf(row, spell, groups.get(Number(row.id)) ?? []);
      return turn ? [[Number(row.id), turn] as const] : [];
    })
  );
  const alarmedAt = (row: WebhookRow): number | null => {
    const turn = turns.get(Number(row.id));
    if (!turn) return row.alarmed_at === null ? null : Number(row.alarmed_at);
    return turn.turn === 'failing' ? app.clock.now() : null;
  };
  await storeFailing(
    tx,
    judged.map(
      ({ row, after, spell }) =>
        [Number(row.id), { ...after, ...spell, alarmedAt: alarmedAt(row) }] as const
    )
  );
  for (const { row, after, reason } of judged) {
    if (reason === null || !row.active) {
      turned.push(...[turns.get(Number(row.id)) ?? []].flat());
      continue;
    }
    const changes = { active: false, disabled_reason: reason, disabled_at: Date.now() };
    await documentsOf(app.strapi, WEBHOOK).update({ documentId: row.document_id, data: changes });
    const consecutive = { consecutive_failures: after.consecutiveFailures };
    const webhook = toWebhook({ ...row, ...consecutive, ...changes });
    turned.push({ turn: 'disabled', webhook, reason });
  }
  return turned;
};

const SAID: Readonly<Record<WebhookTurn, { subject: (name: string) => string; then: string }>> = {
  failing: {
    subject: (name) => `The webhook "${name}" fails`,
    then: 'What fails is tried again by the schedule.',
  },
  recovered: {
    subject: (name) => `The webhook "${name}" works again`,
    then: 'What had failed is sent by its schedule.',
  },
  disabled: {
    subject: (name) => `The webhook "${name}" was switched off`,
    then: 'Nothing more is sent to it until somebody switches it on again.',
  },
};

/**
 * Tells other webhooks, in the transaction in which it was found: so once, on any number of nodes.
 * docs/contract-webhooks.md#being-told
 */
export const publishTurns = async (app: App, turned: readonly TurnedWebhook[]): Promise<void> => {
  if (turned.length === 0) return;
  await getPublisher(app).publish(
    turned.map(({ turn, webhook: { id, name, url }, reason }) => ({
      event: `webhook.${turn}` satisfies TurnEvent,
      data: { webhook: { id, name, url }, reason },
      exceptWebhook: id,
    }))
  );
};

/** Tells the owner: the log, the host's event hub, and by e-mail where an address is set. */
export const announceTurn = (app: App, { turn, webhook, reason }: TurnedWebhook): void => {
  const level = turn === 'recovered' ? 'info' : 'warn';
  app.log[level](`switchboard: webhook ${webhook.id} (${webhook.name}): ${reason}`);
  const hubEvent = `switchboard.webhook.${turn}`;
  app.strapi.eventHub.emit(hubEvent, { webhook }).catch((error: unknown) => {
    app.log.error(`switchboard: a listener of ${hubEvent} failed: ${errorText(error)}`);
  });
  const { subject, then } = SAID[turn];
  const text = `${reason}\n\nName: ${webhook.name}\nAddress: ${webhook.url}\n\n${then}`;
  mailOwner(app, { about: 'a webhook', subject: subject(webhook.name), text });
};

/** The column of the reason. */
const LONGEST_REASON = 255;

/** Why the filter of a row may not be used, as a sentence; null where it may. */
const reasonFor = ({ filter: text }: Pick<WebhookRow, 'filter'>): string | null => {
  const filter = storedFilter(text);
  const wrong = filter && refusalOf(filter);
  return wrong ? `${UNFIT_FILTER} ${wrong.message}.`.slice(0, LONGEST_REASON) : null;
};

const switchOff = async (app: App, id: number, judged: string | null): Promise<TurnedWebhook[]> =>
  app.db.retrying(async () => {
    const db = await app.db.current();
    const [row] = (await db.table(WEBHOOKS_TABLE).where({ id }).forUpdate()) as WebhookRow[];
    // Somebody may have changed or switched off what was judged.
    if (!row?.active || row.filter !== judged) return [];
    const reason = reasonFor(row);
    if (reason === null) return [];
    const changes = { active: false, disabled_reason: reason, disabled_at: Date.now() };
    await documentsOf(app.strapi, WEBHOOK).update({ documentId: row.document_id, data: changes });
    forgetSubscriptions();
    const turned: TurnedWebhook[] = [
      { turn: 'disabled', webhook: toWebhook({ ...row, ...changes }), reason },
    ];
    await publishTurns(app, turned);
    return turned;
  });

/**
 * Switches off active webhooks whose filter may not be used, with the reason: version 0.2 took
 * filters that this one does not, and a node of 0.2 may save one beside this one. At boot, and when
 * an event meets such a filter.
 */
export const switchOffUnfitFilters = async (app: App): Promise<void> => {
  const db = await app.db.current();
  const rows = (await db
    .table(WEBHOOKS_TABLE)
    .select('id', 'filter')
    .where({ active: true })
    .whereNotNull('filter')
    .orderBy('id')) as Pick<WebhookRow, 'id' | 'filter'>[];
  const slice = new TimeSlice();
  for (const row of rows) {
    if (slice.isOver()) await slice.next();
    if (reasonFor(row) === null) continue;
    const turned = await switchOff(app, Number(row.id), row.filter);
    for (const one of turned) announceTurn(app, one);
  }
};

const looking = (): Slot<Promise<void>> => ({});

/** The same beside other work, one look at a time; what goes wrong is tried again by the next event. */
export const switchOffUnfitFiltersLater = (app: App): Promise<void> => {
  const running = app.part(looking).value;
  if (running) return running;
  const look = switchOffUnfitFilters(app)
    .catch((error: unknown) => {
      app.log.error(
        `switchboard: webhooks with an unusable filter could not be switched off: ${errorText(error)}`
      );
    })
    .finally(() => delete app.part(looking).value);
  app.part(looking).value = look;
  return look;
};
