import type { Knex } from 'knex';
import { documentsOf } from '../../database/tables/internal-types';
import { isoTime } from '../../runtime/text';
import {
  continueFailing,
  continueSpell,
  type CountedAttempt,
  type Failing,
  type Spell,
  type SwitchOffLimits,
} from '../rules/failing';
import { WEBHOOK, type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import type { TurnedWebhook } from '../turns';
import { spellOf, toWebhook } from '../webhook';
import type { App } from '../../app';
import type { Tx } from '../../database/db';

/** An attempt that was recorded, in the order of their ends. */
export interface WebhookAttempt extends CountedAttempt {
  webhookId: number;
  /** Why it failed; null: it did not. */
  cause: string | null;
  /** It told of another webhook, by `webhook.failing` and the like. */
  isAlarm: boolean;
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
