import type { Knex } from 'knex';
import { POS_EVENTS_TABLE, RECORD_QUEUE_TABLE } from '../../pos/tables';
import { QUEUE_STATES } from '../../queue/queue';
import { FROM_ELSEWHERE } from '../../webhooks/webhook';
import { DELIVERIES_TABLE, WEBHOOKS_TABLE } from '../../webhooks/tables';
import { type Check, ok, warn } from '../types';
import type { App } from '../../app';

/** Due for longer than this: nobody serves it, or not fast enough. */
const LATE_MS = 60_000;

const hasTable = (app: App, name: string): Promise<boolean> =>
  app.strapi.db.getSchemaConnection().hasTable(name);

const count = async (rows: Knex.QueryBuilder): Promise<number> => {
  const [row] = (await rows.count({ n: '*' })) as { n: number | string }[];
  return Number(row?.n ?? 0);
};

/** For how long the row that has waited longest has been due, milliseconds; 0 where none is late. */
const lateness = async (rows: Knex.QueryBuilder, now: number): Promise<number> => {
  const [row] = (await rows.where('due_at', '>', 0).min({ oldest: 'due_at' })) as {
    oldest: number | string | null;
  }[];
  const oldest = Number(row?.oldest ?? now);
  return Math.max(0, now - oldest);
};

const lateText = (late: number): string =>
  late > LATE_MS ? `; the oldest has been due for ${Math.round(late / 1000)} seconds` : '';

export const deliveries: Check = {
  name: 'deliveries',
  async look(app) {
    if (!(await hasTable(app, DELIVERIES_TABLE))) return null;
    const db = await app.db.current();
    const served = db.table(WEBHOOKS_TABLE).where({ active: true }).select('id');
    const rows = () => db.table(DELIVERIES_TABLE);
    // What waits for a webhook that was deleted waits for nobody, and is about to be ended.
    const known = db.table(WEBHOOKS_TABLE).select('id');
    const pending = () => rows().where({ status: 'pending' }).whereIn('webhook_id', known);
    const waiting = await count(pending().where({ tries: 0 }));
    const failing = await count(pending().where('tries', '>', 0));
    const off = () =>
      db.table(WEBHOOKS_TABLE).where({ active: false }).whereNotNull('disabled_reason');
    const elsewhere = await count(off().where('disabled_reason', 'like', `${FROM_ELSEWHERE}%`));
    const broken = (await count(off())) - elsewhere;
    const late = await lateness(pending().whereIn('webhook_id', served), app.clock.now());
    const message = `deliveries: ${waiting} waiting, ${failing} failing; ${broken} webhooks were switched off${elsewhere > 0 ? `, ${elsewhere} more came from another site` : ''}${lateText(late)}`;
    if (late > LATE_MS) {
      return warn(
        message,
        'see to it that a process sends: a node with webhooks.dispatch, or switchboard worker'
      );
    }
    if (failing > 0 || broken > 0) {
      return warn(message, 'look at the causes in the log of deliveries, and fix the receivers');
    }
    if (elsewhere > 0) {
      return warn(message, 'switch on those that are to send from here');
    }
    return ok(message);
  },
};

export const posEvents: Check = {
  name: 'pos_events',
  async look(app) {
    if (!app.options.features.pos || !(await hasTable(app, RECORD_QUEUE_TABLE))) return null;
    const db = await app.db.current();
    const rows = () => db.table(POS_EVENTS_TABLE);
    const inState = (...states: string[]) => count(rows().whereIn('state', states));
    const waiting = await inState('pending');
    const mapping = await inState('needs_mapping', 'partially_applied');
    const failed = await inState('failed');
    const queued = db.table(RECORD_QUEUE_TABLE).where({ state: QUEUE_STATES.ready });
    const late = await lateness(queued, app.clock.now());
    const message = `records of tills: ${waiting} waiting, ${mapping} waiting for a mapping, ${failed} failed${lateText(late)}`;
    if (late > LATE_MS) {
      return warn(
        message,
        'see to it that a process applies them: a node with pos.process, or switchboard worker'
      );
    }
    if (failed > 0 || mapping > 0) {
      return warn(message, 'look at them in the admin panel, Point of sale, Events');
    }
    return ok(message);
  },
};
