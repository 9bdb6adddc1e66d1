import type { Knex } from 'knex';
import {
  type DeliveryState,
  type DeliveryStatus,
  SUBJECT_TYPES,
  type SubjectType,
} from '../../../../shared/contracts/webhooks';
import { COUNT_LIMIT, countUpToLimit } from '../../http/pagination';
import { type LogSection, sectionOf, sectionsOf } from '../rules/delivery-state';
import { DELIVERIES_TABLE, DELIVERY_QUEUE_TABLE, RECOVERY_ITEMS_TABLE } from '../tables';
import type { App } from '../../app';
import type { Db } from '../../database/db';

/**
 * What rows whose `column` is null have to be ordered by before all else, so that an index which begins
 * with it is read in its order. PostgreSQL does not see that such a column orders nothing, and sorts
 * unless it is named; MariaDB sorts where it is.
 */
const nullOrder = (app: App, column: string): readonly string[] =>
  app.db.client === 'postgres' ? [column] : [];

/** Which deliveries of the log are asked for; what is left out does not matter. */
export interface DeliveryFilter {
  webhook?: number;
  event?: string;
  status?: DeliveryStatus;
  states?: readonly DeliveryState[];
  cause?: string;
  subjectType?: SubjectType;
  subjectId?: string;
  /** Made at this time or later, epoch milliseconds. */
  from?: number;
  /** Made before this time. */
  to?: number;
  /** The whole id of a delivery. */
  deliveryId?: string;
  /** Ids of rows, and ids that receivers know. */
  ids?: readonly (number | string)[];
  /** What a recovery was to send. */
  recovery?: number;
}

/**
 * A part of what a filter asks for whose rows one index holds in the order of the log: of the log itself,
 * or of the queue, in which everything is that was not sent. A filter's branches have no row in common,
 * and together all of its rows. Of a row no more can be selected than `id` and `created_at`.
 */
export interface Branch {
  rows(): Knex.QueryBuilder;
  /** What its rows are ordered by before the time, although it is the same in all of them. */
  orderedBy: readonly string[];
}

/** Causes of a section that get a branch each; there are far fewer unless a receiver makes them up. */
const CAUSES_AT_MOST = 40;

/** The columns that have one value for a filter. */
type Equals = Readonly<Record<string, string | number | undefined>>;

const equalsOf = (filter: DeliveryFilter): Equals => ({
  document_id: filter.deliveryId,
  subject_type: filter.subjectType,
  subject_id: filter.subjectId,
  webhook_id: filter.webhook,
  event: filter.event,
  error: filter.cause,
});

/**
 * Compares a column that the branch's index does not have. Written so that no index on the column can
 * be taken instead: SQLite knows no sizes, and would take the one with the most columns.
 */
const hasValue = (
  query: Knex.QueryBuilder,
  column: string,
  value: string | number
): Knex.QueryBuilder =>
  query.whereRaw('COALESCE(??, ?) = ?', [column, typeof value === 'number' ? 0 : '', value]);

const isTried = (query: Knex.QueryBuilder, { tried }: LogSection): Knex.QueryBuilder => {
  if (tried === undefined) return query;
  return tried ? query.where('tries', '>', 0) : query.where('tries', 0);
};

/** Finds the branches of one filter. */
class Branches {
  private readonly equals: Equals;
  private readonly sections: readonly LogSection[];

  constructor(
    private readonly app: App,
    private readonly db: Db,
    private readonly filter: DeliveryFilter
  ) {
    this.equals = equalsOf(filter);
    this.sections = sectionsOf(filter.status, filter.states);
  }

  async find(): Promise<Branch[]> {
    const { cause, deliveryId, event, states, status, subjectId, webhook } = this.filter;
    if (this.sections.length === 0) return [];
    if (deliveryId !== undefined) return [this.whole(['document_id'])];
    if (this.isListed()) return [this.whole([])];
    if (subjectId !== undefined) return this.bySubject();
    const isWhole = status === undefined && states === undefined && cause === undefined;
    if (event !== undefined) {
      const isOnlyOne = isWhole && webhook === undefined;
      if (isOnlyOne || (await this.isRare(event))) return [this.whole(['event'])];
    }
    if (isWhole) return [this.whole(webhook === undefined ? [] : ['webhook_id'])];
    return this.bySection();
  }

  /** Rows where these columns have the filter's values, and the others too, but not by an index. */
  private rows(indexed: readonly string[]): Knex.QueryBuilder {
    let query = this.db.table(DELIVERIES_TABLE);
    for (const [column, value] of Object.entries(this.equals)) {
      if (value === undefined) continue;
      query = indexed.includes(column)
        ? query.where(column, value)
        : hasValue(query, column, value);
    }
    return this.made(this.listed(query));
  }

  /** Whether the rows are found by their ids. */
  private isListed(): boolean {
    return this.filter.ids !== undefined || this.filter.recovery !== undefined;
  }

  private listed(query: Knex.QueryBuilder): Knex.QueryBuilder {
    const { ids, recovery } = this.filter;
    if (recovery !== undefined) {
      query.whereIn(
        'id',
        this.db
          .table(RECOVERY_ITEMS_TABLE)
          .select('delivery_id')
          .where({ recovery_id: recovery })
          .whereNotNull('delivery_id')
      );
    }
    if (ids === undefined) return query;
    const numbers = ids.filter((id) => typeof id === 'number');
    const known = ids.filter((id) => typeof id === 'string');
    return query.where((any) => {
      any.whereIn('id', numbers).orWhereIn('document_id', known);
    });
  }

  /** Of the time that is asked for; every index of the log ends with the time. */
  private made(query: Knex.QueryBuilder): Knex.QueryBuilder {
    const { from, to } = this.filter;
    const since = from === undefined ? query : query.where('created_at', '>=', from);
    return to === undefined ? since : since.where('created_at', '<', to);
  }

  /** One branch of all sections. */
  private whole(indexed: readonly string[]): Branch {
    const { status, states } = this.filter;
    return {
      orderedBy: [],
      rows: () =>
        status === undefined && states === undefined
          ? this.rows(indexed)
          : this.rows(indexed).where((any) => {
              for (const section of this.sections) {
                any.orWhere((one) => {
                  one.where({ status: section.status, is_test: section.isTest });
                  isTried(one, section);
                });
              }
            }),
    };
  }

  /** Ids of records of different types may be the same. */
  private async bySubject(): Promise<Branch[]> {
    const { subjectType } = this.filter;
    if (subjectType) return [this.whole(['subject_type', 'subject_id'])];
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

  /** Whether there are so few of an event that the other filters need no index. */
  private async isRare(event: string): Promise<boolean> {
    const rows = this.made(this.db.table(DELIVERIES_TABLE)).where({ event });
    return (await countUpToLimit(this.db.knex as Knex, rows)) <= COUNT_LIMIT;
  }

  private async bySection(): Promise<Branch[]> {
    const found: Branch[] = [];
    // One after the other: a page of the log must not take every connection of the pool.
    for (const section of this.sections) {
      if (section.status === 'sent' && !section.isTest) found.push(...this.sent());
      else found.push(...(await this.queued(section)));
    }
    return found;
  }

  /** Of what was sent nothing but the log knows; it has no cause. Most of the log was. */
  private sent(): Branch[] {
    const { cause, event, webhook } = this.filter;
    if (cause !== undefined) return [];
    const indexed = webhook !== undefined ? ['webhook_id'] : event !== undefined ? ['event'] : [];
    return [
      {
        orderedBy: [],
        rows: () => this.rows(indexed).where({ status: 'sent', is_test: false }),
      },
    ];
  }

  private async queued({ status, isTest, tried }: LogSection): Promise<Branch[]> {
    const branches: Branch[] = [];
    for (const tries of [0, 1]) {
      if (tried !== undefined && tried !== tries > 0) continue;
      const section = sectionOf({ status, tries, isTest });
      // Of most sections it says nothing whether they were tried.
      if (tries > 0 && section === sectionOf({ status, tries: 0, isTest })) continue;
      branches.push(...(await this.causesOf(section)));
    }
    return branches;
  }

  private inSection(section: number): Knex.QueryBuilder {
    const { event, webhook } = this.filter;
    const rows = this.db
      .table(DELIVERY_QUEUE_TABLE)
      .where({ section, ...(webhook !== undefined && { group_id: webhook }) });
    return this.made(event === undefined ? rows : rows.where({ event }));
  }

  /** A branch for each cause in a section, and one for what has none. */
  private async causesOf(section: number): Promise<Branch[]> {
    const { cause } = this.filter;
    const branch = (
      only: (rows: Knex.QueryBuilder) => Knex.QueryBuilder,
      orderedBy: readonly string[] = []
    ): Branch => ({ orderedBy, rows: () => only(this.inSection(section)) });
    if (cause !== undefined) return [branch((rows) => rows.where('error', cause))];
    const causes = await this.causes(section);
    const order = nullOrder(this.app, 'error');
    const branches = [
      branch((rows) => rows.whereNull('error'), order),
      ...causes.map((one) => branch((rows) => rows.where('error', one))),
    ];
    const last = causes.at(-1);
    if (last !== undefined && causes.length === CAUSES_AT_MOST) {
      branches.push(branch((rows) => rows.where('error', '>', last)));
    }
    return branches;
  }

  /** The causes that a section has, each found by going to the next one in the index. */
  private async causes(section: number): Promise<string[]> {
    const { webhook } = this.filter;
    const causes: string[] = [];
    while (causes.length < CAUSES_AT_MOST) {
      const query = this.db
        .table(DELIVERY_QUEUE_TABLE)
        .where({ section, ...(webhook !== undefined && { group_id: webhook }) })
        .where('error', '>', causes.at(-1) ?? '');
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

/** The place of a delivery in the log, which is newest first: by its time, then by its row's id. */
export interface LogPlace {
  /** Epoch milliseconds. */
  at: number;
  id: number;
}

/** Whether a place comes after another one in the log: it is an older one. */
export const isAfter = (place: LogPlace, other: LogPlace): boolean =>
  place.at < other.at || (place.at === other.at && place.id < other.id);

/** What a search for a text found with its first page, for the pages that follow. */
export interface SearchedLog {
  /** The last place that is searched. */
  end: LogPlace;
  /** Matches up to there, counted up to the limit of all lists. */
  total: number;
  totalCapped: boolean;
}

/** Where the next page of the log begins: after a place that does not move when rows arrive. */
export interface LogCursor {
  after: LogPlace;
  searched: SearchedLog | null;
}

const LATEST = 8_640_000_000_000_000;
const LARGEST_ID = 2_147_483_647;

/** Somebody may have made it up: what is in it must be right for a statement and for an answer. */
const isNumber = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= LATEST;

const NUMBERS_OF_SEARCH = 6;

/** As text that goes into an address as it is; what is in it is nobody's business but ours. */
export const formatCursor = ({ after, searched }: LogCursor): string => {
  const search = searched
    ? [searched.end.at, searched.end.id, searched.total, Number(searched.totalCapped)]
    : [];
  return Buffer.from(JSON.stringify([after.at, after.id, ...search])).toString('base64url');
};

/** @returns null for what `formatCursor` has not made */
export const parseCursor = (text: string): LogCursor | null => {
  let numbers: unknown;
  try {
    numbers = JSON.parse(Buffer.from(text, 'base64url').toString());
  } catch {
    return null;
  }
  if (!Array.isArray(numbers) || !numbers.every(isNumber)) return null;
  const [at = 0, id = 0, endAt = 0, endId = 0, total = 0, capped = 0] = numbers;
  if (id > LARGEST_ID || endId > LARGEST_ID) return null;
  const after = { at, id };
  if (numbers.length === 2) return { after, searched: null };
  if (numbers.length !== NUMBERS_OF_SEARCH) return null;
  return {
    after,
    searched: { end: { at: endAt, id: endId }, total, totalCapped: capped === 1 },
  };
};
