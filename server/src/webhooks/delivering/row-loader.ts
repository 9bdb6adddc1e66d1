import type { Core } from '@strapi/strapi';
import type { ModuleId } from '../../../../shared/contracts/modules';
import type { Knex } from 'knex';
import {
  currentExecutor,
  type Executor,
  rowsOf,
  type Statement,
  table,
} from '../../database/connection';
import { padded, runPrepared } from '../../database/statements';
import { nextTurn } from '../../runtime/event-loop';
import { enabledModules, storedModules } from '../../modules';
import { type WebhookRow, WEBHOOKS_TABLE } from '../tables';

/** What an attempt has to know of its webhook, as it is now. */
export interface LoadedWebhook {
  webhook: WebhookRow;
  /** The modules that are on. */
  enabled: ReadonlySet<ModuleId>;
}

type Answer = Promise<LoadedWebhook | null>;

/** What is gathered for one query. */
interface Batch {
  ids: number[];
  /** When the database was asked, in milliseconds of the process's clock; null: it is about to be. */
  askedAt: number | null;
  rows: Promise<(id: number) => LoadedWebhook | null>;
}

/**
 * How long a row that was read is good for further attempts, in milliseconds of the process's clock. No
 * longer than an attempt that has read its webhook may wait for its turn to be posted.
 */
const FRESH_MS = 5;

/**
 * Reads webhooks for attempts. Each attempt must see the secret, the address and the switches as they
 * are now (rotation holds at once, for queued deliveries too), yet a query an attempt would be the
 * dearest part of it: whatever is asked for in one turn of the event loop is one query, and what
 * was asked of the database less than 5 ms ago is not asked again.
 */
export const createRowLoader = (strapi: Core.Strapi): ((id: number) => Answer) => {
  const recent = new Map<number, { batch: Batch; answer: Answer }>();
  let gathering: Batch | null = null;
  /** By how many ids they ask for. */
  const statements = new Map<number, Statement>();

  /** For some ids; the statement is built once for each number of them. */
  const statementOf = (executor: Executor, ids: readonly number[]): Statement => {
    const { sql, bindings } = table(strapi, executor, WEBHOOKS_TABLE)
      .select('*', storedModules(strapi, executor).as('modules'))
      .whereIn('id', [...ids])
      .toSQL();
    return { sql, bindings: bindings as readonly Knex.RawBinding[] };
  };

  const load = async (ids: readonly number[]): Promise<(id: number) => LoadedWebhook | null> => {
    const executor = await currentExecutor(strapi);
    const asked = padded([...new Set(ids)]);
    const { sql, bindings } = statements.get(asked.length) ?? statementOf(executor, asked);
    statements.set(asked.length, { sql, bindings });
    // The ids are what its statement ends with.
    const values = [...bindings.slice(0, -asked.length), ...asked];
    const rows = rowsOf<WebhookRow & { modules: string | null }>(
      await runPrepared(executor, { sql, bindings: values })
    );
    const byId = new Map(rows.map((row) => [Number(row.id), row]));
    const enabled = enabledModules(rows[0]?.modules);
    return (id) => {
      const webhook = byId.get(id);
      return webhook ? { webhook, enabled } : null;
    };
  };

  /** Of the next query, which is sent when this turn of the event loop is over. */
  const nextBatch = (): Batch => {
    const ids: number[] = [];
    const rows = nextTurn().then(() => {
      gathering = null;
      batch.askedAt = performance.now();
      // Its row and the secret in it leave the memory, whether anybody asks again or not.
      setTimeout(() => forget(batch), FRESH_MS).unref();
      return load(ids);
    });
    const batch: Batch = { ids, askedAt: null, rows };
    return batch;
  };

  const forget = (batch: Batch): void => {
    for (const id of batch.ids) if (recent.get(id)?.batch === batch) recent.delete(id);
  };

  const isFresh = ({ askedAt }: Batch): boolean =>
    askedAt === null || performance.now() - askedAt < FRESH_MS;

  return (id) => {
    const known = recent.get(id);
    if (known && isFresh(known.batch)) return known.answer;
    gathering ??= nextBatch();
    gathering.ids.push(id);
    const answer = gathering.rows.then((find) => find(id));
    recent.set(id, { batch: gathering, answer });
    return answer;
  };
};
