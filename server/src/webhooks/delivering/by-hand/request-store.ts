import { randomUUID } from 'node:crypto';
import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { TestResult } from '../../../../../shared/contracts/webhooks';
import { getClock } from '../../../database/clock';
import { currentExecutor, table } from '../../../database/connection';
import { withTransientRetry } from '../../../database/retry';
import { MANUAL_REQUESTS_TABLE, type ManualRequestRow } from './requests-table';
import type { RetryRefusal } from '../../sending/by-hand';

/** What another process shall send now. */
export type ManualRequest =
  { kind: 'retry'; delivery: number } | { kind: 'test'; webhook: number; event: string };

/** What came of it; `failed` where it could not be done, with the words for the log. */
export type ManualAnswer =
  | { kind: 'retry'; refusal: RetryRefusal | null }
  | { kind: 'test'; result: TestResult }
  | { kind: 'missing'; message: string }
  | { kind: 'failed'; message: string };

/** A request that this process has taken and has to answer. */
export interface TakenRequest {
  token: string;
  request: ManualRequest;
}

/** How a request stands, for the process that made it. */
export type RequestState =
  { state: 'waiting' } | { state: 'taken' } | { state: 'answered'; answer: ManualAnswer };

/**
 * The requests of processes that do not send. Over the database alone, because that is all that the
 * processes of a site are sure to share.
 */
export interface ManualRequestStore {
  /** Epoch milliseconds, by the database's clock. */
  now(): number;
  /** Asks. @returns the token by which the request is looked at and taken back. */
  ask(request: ManualRequest, forMs: number): Promise<string>;
  look(token: string): Promise<RequestState>;
  /** Takes a request back unless another process has taken it. @returns whether it was taken back. */
  withdraw(token: string): Promise<boolean>;
  remove(token: string): Promise<void>;
  /** Whether somebody waits for a process that sends. */
  isWaiting(): Promise<boolean>;
  /** Takes up to `limit` requests that somebody still waits for, each by one process only. */
  take(limit: number): Promise<TakenRequest[]>;
  answer(token: string, answer: ManualAnswer): Promise<void>;
  /** Removes what processes left that died while they waited. */
  removeOlderThan(ms: number): Promise<void>;
}

const toRequest = ({ kind, target_id: id, event }: ManualRequestRow): ManualRequest =>
  kind === 'retry'
    ? { kind, delivery: Number(id) }
    : { kind, webhook: Number(id), event: String(event) };

export const createManualRequestStore = (strapi: Core.Strapi): ManualRequestStore => {
  const now = () => getClock(strapi).now();

  /** Each is a single statement, so one that a lock got in the way of may simply be run again. */
  const run = <T>(statement: (rows: Knex.QueryBuilder) => PromiseLike<T>): Promise<T> =>
    withTransientRetry(async () =>
      statement(table(strapi, await currentExecutor(strapi), MANUAL_REQUESTS_TABLE))
    );

  const waiting = (rows: Knex.QueryBuilder): Knex.QueryBuilder =>
    rows.whereNull('taken_at').where('expires_at', '>', now());

  return {
    now,

    async ask(request, forMs) {
      const token = randomUUID();
      const at = now();
      await run((rows) =>
        rows.insert({
          token,
          kind: request.kind,
          target_id: request.kind === 'retry' ? request.delivery : request.webhook,
          event: request.kind === 'test' ? request.event : null,
          asked_at: at,
          expires_at: at + forMs,
          taken_at: null,
          answer: null,
        })
      );
      return token;
    },

    async look(token) {
      const row = await run<Pick<ManualRequestRow, 'taken_at' | 'answer'> | undefined>((rows) =>
        rows.where({ token }).first('taken_at', 'answer')
      );
      if (row?.answer) return { state: 'answered', answer: JSON.parse(row.answer) as ManualAnswer };
      return { state: row && row.taken_at === null ? 'waiting' : 'taken' };
    },

    withdraw: async (token) =>
      (await run<number>((rows) => rows.where({ token }).whereNull('taken_at').delete())) > 0,

    async remove(token) {
      await run((rows) => rows.where({ token }).delete());
    },

    isWaiting: async () => Boolean(await run((rows) => waiting(rows).first('id'))),

    async take(limit) {
      const found = await run<ManualRequestRow[]>((rows) =>
        waiting(rows).orderBy('id').limit(limit).select('*')
      );
      const taken: TakenRequest[] = [];
      for (const row of found) {
        const { token } = row;
        const changed = await run<number>((rows) =>
          waiting(rows.where({ token })).update({ taken_at: now() })
        );
        if (changed === 1) taken.push({ token, request: toRequest(row) });
      }
      return taken;
    },

    async answer(token, answer) {
      await run((rows) => rows.where({ token }).update({ answer: JSON.stringify(answer) }));
    },

    async removeOlderThan(ms) {
      await run((rows) => rows.where('asked_at', '<', now() - ms).delete());
    },
  };
};
