import { z } from '@strapi/utils';
import type { Knex } from 'knex';
import {
  type DeliveryState,
  type RecoveryFilter,
  SUBJECT_TYPES,
  type SubjectType,
} from '../../../../shared/contracts/webhooks';
import { COUNT_LIMIT, countUpToLimit } from '../../http/pagination';
import { fieldError, LARGEST_ID } from '../../http/validation';
import { type LogSection, sectionsOf } from '../rules/delivery-state';
import { DELIVERIES_TABLE, DELIVERY_QUEUE_TABLE, RECOVERY_ITEMS_TABLE } from '../tables';
import { BY_HAND } from './store';
import type { App } from '../../app';
import type { Db } from '../../database/db';

/** The log's filters as a request has them; docs/management-api.md#finding-deliveries. Times are ISO 8601. */
type LogQuery = Omit<RecoveryFilter, 'state' | 'ids'> & { state?: readonly DeliveryState[] };

/** Which deliveries of the log are asked for; what is left out does not matter. */
export interface DeliveryFilter extends Omit<RecoveryFilter, 'state' | 'from' | 'to' | 'q'> {
  states?: readonly DeliveryState[];
  /** Made at this time or later, epoch milliseconds. */
  from?: number;
  /** Made before this time. */
  to?: number;
  deliveryId?: string;
}

/** The part of a query that has to be searched for, because no index finds it in the order of the log. */
export interface Search {
  /** In a delivery's id, its subject's label or its cause. */
  text?: string;
  subjectType?: SubjectType;
}

/** Deliveries of the log. `search`: what is looked for in the newest that the filter leaves; null: all of them. */
export interface LogSelection {
  filter: DeliveryFilter;
  search: Search | null;
}

const DELIVERY_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** True if a text is the whole id of a delivery, as its receiver knows it. */
export const isDeliveryId = (text: string): boolean => DELIVERY_ID.test(text);

/** The deliveries of a query. A whole delivery id in `q` has an index; another text, or a type, is searched for. */
export const selectionOf = (given: LogQuery): LogSelection => {
  const { q, state: states, subject_type: type, from, to, ...query } = given;
  const isId = q !== undefined && isDeliveryId(q);
  const isOfType = type !== undefined && query.subject_id === undefined;
  const text = isId ? undefined : q;
  const isSearch = text !== undefined || isOfType;
  return {
    filter: {
      ...query,
      states,
      ...(!isOfType && { subject_type: type }),
      ...(from !== undefined && { from: Date.parse(from) }),
      ...(to !== undefined && { to: Date.parse(to) }),
      ...(isId && { deliveryId: q.toLowerCase() }),
    },
    search: isSearch ? { text, ...(isOfType && { subjectType: type }) } : null,
  };
};

/**
 * A part of a filter whose rows one index has in log order: of the log, or of the queue, which has everything unsent. A
 * filter's branches are disjoint and complete. Only `id`, `created_at`, `error` and the webhook can be selected.
 */
export interface Branch {
  rows(): Knex.QueryBuilder;
  /** Columns to order its rows by before the time, although they are the same in all of them. */
  orderedBy: readonly string[];
  webhook: 'webhook_id' | 'group_id';
}

/** Causes of a section that get a branch each; there are far fewer unless a receiver makes them up. */
const CAUSES_AT_MOST = 40;

class Branches {
  private readonly sections: readonly LogSection[];

  constructor(
    private readonly app: App,
    private readonly db: Db,
    private readonly filter: DeliveryFilter
  ) {
    this.sections = sectionsOf(filter.status, filter.states);
  }

  async find(): Promise<Branch[]> {
    const { cause, deliveryId, event, ids, recovery, webhook } = this.filter;
    if (this.sections.length === 0) return [];
    if (deliveryId !== undefined) return [this.whole(['document_id'])];
    if (ids !== undefined || recovery !== undefined) return [this.whole([])];
    if (this.filter.subject_id !== undefined) return this.bySubject();
    const isWhole = this.isOfAllSections() && cause === undefined;
    if (event !== undefined) {
      const isOnlyOne = isWhole && webhook === undefined;
      if (isOnlyOne || (await this.isRare(event))) return [this.whole(['event'])];
    }
    if (isWhole) return [this.whole(webhook === undefined ? [] : ['webhook_id'])];
    const branches: Branch[] = [];
    // One after the other: a page of the log must not take every connection of the pool.
    for (const section of this.sections) {
      if (section.state === 'sent') branches.push(...this.sent());
      else branches.push(...(await this.causesOf(section.number)));
    }
    return [...branches, ...(await this.byHand())];
  }

  /** Deliveries that are being resent by hand are in no webhook's group meanwhile; there are few. */
  private async byHand(): Promise<Branch[]> {
    const sections = this.sections.flatMap((one) => (one.state === 'sent' ? [] : one.number));
    const ids = (await this.db
      .table(DELIVERY_QUEUE_TABLE)
      .where({ group_id: BY_HAND })
      .whereIn('section', sections)
      .pluck('id')) as number[];
    const rows = () => this.rows([]).whereIn('id', ids);
    return ids.length > 0 ? [{ orderedBy: [], rows, webhook: 'webhook_id' }] : [];
  }

  private isOfAllSections(): boolean {
    return this.filter.status === undefined && this.filter.states === undefined;
  }

  /** Rows that match. SQLite has no statistics: indexes of columns that are not `indexed` are out of its choice. */
  private rows(indexed: readonly string[]): Knex.QueryBuilder {
    const { ids, recovery, ...filter } = this.filter;
    const query = this.db.table(DELIVERIES_TABLE);
    const equals = {
      document_id: filter.deliveryId,
      subject_type: filter.subject_type,
      subject_id: filter.subject_id,
      webhook_id: filter.webhook,
      event: filter.event,
      error: filter.cause,
    };
    for (const [column, value] of Object.entries(equals)) {
      if (value === undefined) continue;
      if (indexed.includes(column)) query.where(column, value);
      else {
        const none = typeof value === 'number' ? 0 : '';
        query.whereRaw('COALESCE(??, ?) = ?', [column, none, value]);
      }
    }
    if (recovery !== undefined) {
      const items = this.db.table(RECOVERY_ITEMS_TABLE).where({ recovery_id: recovery });
      query.whereIn('id', items.select('delivery_id').whereNotNull('delivery_id'));
    }
    if (ids !== undefined) {
      const numbers = ids.filter((id) => typeof id === 'number');
      const known = ids.filter((id) => typeof id === 'string');
      query.where((any) => {
        any.whereIn('id', numbers).orWhereIn('document_id', known);
      });
    }
    return this.made(query);
  }

  /** Limits rows to the filter's time; every index of the log ends with the time. */
  private made(query: Knex.QueryBuilder): Knex.QueryBuilder {
    const { from, to } = this.filter;
    if (from !== undefined) query.where('created_at', '>=', from);
    if (to !== undefined) query.where('created_at', '<', to);
    return query;
  }

  private whole(indexed: readonly string[]): Branch {
    const rows = (): Knex.QueryBuilder => {
      const query = this.rows(indexed);
      if (this.isOfAllSections()) return query;
      return query.where((any) => {
        for (const { status, state } of this.sections) {
          any.orWhere((one) => {
            one.where({ status, is_test: state === 'test' });
            if (state === 'waiting') one.where('tries', 0);
            if (state === 'failing') one.where('tries', '>', 0);
          });
        }
      });
    };
    return { orderedBy: [], rows, webhook: 'webhook_id' };
  }

  /** Ids of records of different types may be the same. */
  private async bySubject(): Promise<Branch[]> {
    if (this.filter.subject_type) return [this.whole(['subject_type', 'subject_id'])];
    const whole = this.whole(['subject_id']);
    return (await this.subjectTypes()).map((type) => ({
      ...whole,
      rows: () => whole.rows().where('subject_type', type),
    }));
  }

  /** The types of records in the log: those of the CRM, and each content type that the index has. */
  private async subjectTypes(): Promise<readonly string[]> {
    const types = new Set<string>(SUBJECT_TYPES);
    let last = '';
    for (;;) {
      const next = this.db
        .table(DELIVERIES_TABLE)
        .where('subject_type', '>', last)
        .min('subject_type as type')
        .first();
      const { type } = ((await next) ?? {}) as { type?: string | null };
      if ((type ?? null) === null) return [...types];
      last = String(type);
      types.add(last);
    }
  }

  /** True if there are so few of an event that the other filters need no index. */
  private async isRare(event: string): Promise<boolean> {
    const rows = this.made(this.db.table(DELIVERIES_TABLE)).where({ event });
    return (await countUpToLimit(this.db, rows)) <= COUNT_LIMIT;
  }

  /** Only the log knows deliveries that were sent; they have no cause. Most of the log was. */
  private sent(): Branch[] {
    const { cause, event, webhook } = this.filter;
    if (cause !== undefined) return [];
    const indexed = webhook !== undefined ? ['webhook_id'] : event !== undefined ? ['event'] : [];
    const rows = () => this.rows(indexed).where({ status: 'sent', is_test: false });
    return [{ orderedBy: [], rows, webhook: 'webhook_id' }];
  }

  private inSection(section: number): Knex.QueryBuilder {
    const { webhook } = this.filter;
    return this.db
      .table(DELIVERY_QUEUE_TABLE)
      .where({ section, ...(webhook !== undefined && { group_id: webhook }) })
      .whereNot({ group_id: BY_HAND });
  }

  private async causesOf(section: number): Promise<Branch[]> {
    const { cause, event } = this.filter;
    const rows = () => {
      const all = this.made(this.inSection(section));
      return event === undefined ? all : all.where({ event });
    };
    const inQueue = { orderedBy: [], webhook: 'group_id' } as const;
    const of = (error: string): Branch => ({ ...inQueue, rows: () => rows().where({ error }) });
    if (cause !== undefined) return [of(cause)];
    const causes = await this.causes(section);
    // A column that is null in all rows orders nothing, but the index begins with it: PostgreSQL sorts
    // unless it is named, MariaDB where it is.
    const order = this.app.db.client === 'postgres' ? ['error'] : [];
    const none = { ...inQueue, orderedBy: order, rows: () => rows().whereNull('error') };
    const branches: Branch[] = [none, ...causes.map(of)];
    const last = causes.at(-1);
    if (last !== undefined && causes.length === CAUSES_AT_MOST) {
      branches.push({ ...inQueue, rows: () => rows().where('error', '>', last) });
    }
    return branches;
  }

  /** The causes that a section has, each found by going to the next one in the index. */
  private async causes(section: number): Promise<string[]> {
    const causes: string[] = [];
    while (causes.length < CAUSES_AT_MOST) {
      const query = this.inSection(section).where('error', '>', causes.at(-1) ?? '');
      const next = (await query.select('error').orderBy('error').first()) as
        { error: string } | undefined;
      if (!next) break;
      causes.push(next.error);
    }
    return causes;
  }
}

/** How the rows of a filter are found: by the fewest branches that an index each holds in order. */
export const branchesOf = (db: Db, app: App, filter: DeliveryFilter): Promise<Branch[]> =>
  new Branches(app, db, filter).find();

const LATEST = 8_640_000_000_000_000;

/** The place of a delivery in the log, which is newest first: by its time, then by its row's id. */
const logPlace = z.object({
  /** Epoch milliseconds. */
  at: z.number().int().min(0).max(LATEST),
  id: z.number().int().min(0).max(LARGEST_ID),
});
export type LogPlace = z.infer<typeof logPlace>;

/** The result of a text search on its first page, for the pages that follow. */
const searchedLog = z.object({
  end: logPlace,
  /** Matches up to there, counted up to the limit of all lists. */
  total: z.number().int().min(0).max(COUNT_LIMIT),
  totalCapped: z.boolean(),
});
export type SearchedLog = z.infer<typeof searchedLog>;

/** The beginning of the next page of the log: after a place that does not move when rows arrive. */
const logCursor = z.object({ after: logPlace, searched: searchedLog.nullable() });
export type LogCursor = z.infer<typeof logCursor>;

/** True if a place comes after another in the log, which means it is older. */
export const isAfter = (place: LogPlace, other: LogPlace): boolean =>
  place.at < other.at || (place.at === other.at && place.id < other.id);

/** A text that needs no escaping in an address; its contents are private to us. */
export const formatCursor = (cursor: LogCursor): string =>
  Buffer.from(JSON.stringify(cursor)).toString('base64url');

/** @returns null for a text that `formatCursor` has not made */
export const parseCursor = (text: string): LogCursor | null => {
  try {
    return logCursor.parse(JSON.parse(Buffer.from(text, 'base64url').toString()));
  } catch {
    return null;
  }
};

/** @throws ValidationError (400) for a cursor that a search made, or did not make */
export const cursorOf = (cursor: string | undefined, search: Search | null): LogCursor | null => {
  const parsed = cursor === undefined ? null : parseCursor(cursor);
  if (parsed && (parsed.searched !== null) !== (search !== null)) {
    throw fieldError('cursor', 'is of a page of another search');
  }
  return parsed;
};
