import {
  type ConnectionRefusal,
  type LoggedRefusal,
  REFUSALS_KEPT,
} from '../../../../shared/contracts/pos';
import type { Page } from '../../../../shared/contracts/webhooks';
import type { PlainTable, RowOf } from '../../database/tables/plain-tables';
import type { Db } from '../../database/db';
import { type PageRequest, readPage } from '../../http/pagination';
import { errorText, isoTime, isRecord, jsonIn } from '../../runtime/text';
import {
  type AskingKind,
  type ClosingRecord,
  EVENT_KINDS,
  type EventKind,
  type PosRecord,
} from '../rules/records';
import { connectionsOf } from '../connections';
import { IDENTIFIER } from '../rules/envelopes';
import { CONNECTIONS_TABLE } from '../tables';
import type { Refusal } from './wire';
import type { App } from '../../app';

export const POS_REFUSALS_TABLE = 'switchboard_pos_refusals';

/** The latest requests of each connection's key that were refused; at most `REFUSALS_KEPT` each. */
export const posRefusalTable = {
  tableName: POS_REFUSALS_TABLE,
  attributes: {
    connection_id: { type: 'integer' },
    at: { type: 'biginteger' },
    kind: { type: 'string' },
    code: { type: 'string' },
    message: { type: 'text' },
    external_id: { type: 'text', null: true },
  },
  indexes: [{ name: 'sb_refusal_latest', columns: ['connection_id', 'at'] }],
} satisfies PlainTable;

type PosRefusalRow = RowOf<typeof posRefusalTable> & {
  kind: EventKind | AskingKind | 'ping';
};

/** Refusals are written together, and no sooner than this after the last time. */
const EVERY_MS = 1_000;
/** Unsigned refusals kept per minute and connection: keys are public, so a flood must cost the database little. */
const UNSIGNED_A_MINUTE = 120;
const MINUTE_MS = 60_000;

/** A body that its connection signed, and the record that it was read as; null: it was not. */
export interface SignedBody {
  body: Buffer;
  record: PosRecord | ClosingRecord | null;
}

/** Kinds whose body names an id; `validate` too, once the record in it is known. */
const HAVING_ID: ReadonlySet<string> = new Set([...EVENT_KINDS, 'validate']);

/** The id in a refused body, if readable, and nothing else. Bodies of tills over their rate are not read. */
const namedExternalId = ({ kind, refusal, signed }: RefusedRequest): string | null => {
  if (!signed) return null;
  const { body, record } = signed;
  if (record) return record.externalId;
  if (!HAVING_ID.has(kind) || refusal.code === 'rate_limited') return null;
  const value = jsonIn(body.toString('utf8'));
  const id = isRecord(value) ? value.external_id : null;
  return typeof id === 'string' && IDENTIFIER.test(id) ? id : null;
};

export interface RefusedRequest {
  kind: ConnectionRefusal['kind'];
  refusal: Pick<Refusal, 'code' | 'message'>;
  atMs: number;
  /** null if nobody knows who sent it. */
  signed: SignedBody | null;
}

const toRefusal = (row: PosRefusalRow): ConnectionRefusal => ({
  at: isoTime(Number(row.at)),
  kind: row.kind,
  code: row.code,
  message: row.message,
  external_id: row.external_id,
});

const newestFirst = (db: Db) =>
  db.table(POS_REFUSALS_TABLE).orderBy('at', 'desc').orderBy('id', 'desc');

/** The latest refusals of each connection: noted concurrently with the requests, never in their way. */
class Refusals {
  private readonly pending = new Map<number, Omit<PosRefusalRow, 'id'>[]>();
  private readonly unsigned = new Map<number, { since: number; count: number }>();
  private lastWrite = 0;
  private timer: NodeJS.Timeout | null = null;
  private writing: Promise<void> = Promise.resolve();

  constructor(private readonly app: App) {}

  note(connection: number, refused: RefusedRequest): void {
    const { kind, refusal, atMs, signed } = refused;
    if (signed === null && !this.mayKeep(connection, atMs)) return;
    const rows = this.pending.get(connection) ?? [];
    rows.push({
      connection_id: connection,
      at: atMs,
      kind,
      code: refusal.code,
      message: refusal.message,
      external_id: namedExternalId(refused),
    });
    if (rows.length > REFUSALS_KEPT) rows.shift();
    this.pending.set(connection, rows);
    const wait = Math.max(0, this.lastWrite + EVERY_MS - Date.now());
    this.timer ??= this.app.detached(() =>
      setTimeout(() => {
        this.timer = null;
        void this.write();
      }, wait).unref()
    );
  }

  /** Newest first, at most `REFUSALS_KEPT`; those of this process that are not written yet too. */
  async latest(connection: number): Promise<ConnectionRefusal[]> {
    await this.write();
    const rows: PosRefusalRow[] = await newestFirst(await this.app.db.current())
      .where({ connection_id: connection })
      .limit(REFUSALS_KEPT);
    return rows.map(toRefusal);
  }

  async list({
    connection,
    ...request
  }: PageRequest & { connection?: number | undefined }): Promise<Page<LoggedRefusal>> {
    await this.write();
    const db = await this.app.db.current();
    const query = newestFirst(db).select('*');
    if (connection !== undefined) query.where({ connection_id: connection });
    const { rows, meta } = await readPage<PosRefusalRow>(db, query, request);
    const connectionOf = await connectionsOf(db, rows);
    const data = rows.map((row) => ({
      id: Number(row.id),
      ...toRefusal(row),
      connection: connectionOf(row.connection_id),
    }));
    return { data, meta };
  }

  private mayKeep(connection: number, atMs: number): boolean {
    const spent = this.unsigned.get(connection);
    if (!spent || atMs - spent.since >= MINUTE_MS) {
      this.unsigned.set(connection, { since: atMs, count: 1 });
      return true;
    }
    spent.count += 1;
    return spent.count <= UNSIGNED_A_MINUTE;
  }

  private write(): Promise<void> {
    this.writing = this.writing.then(() => this.writeOnce());
    return this.writing;
  }

  private async writeOnce(): Promise<void> {
    if (this.pending.size === 0) return;
    const taken = new Map(this.pending);
    this.pending.clear();
    this.lastWrite = Date.now();
    try {
      const db = await this.app.db.current();
      // Rows of a connection that was removed meanwhile would belong to nobody.
      const there: { id: number }[] = await db
        .table(CONNECTIONS_TABLE)
        .select('id')
        .whereIn('id', [...taken.keys()])
        .whereNull('deleted_at');
      const known = there.map(({ id }) => Number(id));
      const rows = known.flatMap((id) => taken.get(id) ?? []);
      await db.insert(POS_REFUSALS_TABLE, rows);
      for (const id of known) {
        const older = newestFirst(db).where({ connection_id: id }).offset(REFUSALS_KEPT).limit(500);
        const old = (await older.pluck('id')) as number[];
        if (old.length > 0) await db.table(POS_REFUSALS_TABLE).whereIn('id', old).delete();
      }
    } catch (error) {
      this.app.log.warn(`switchboard: refusals of tills were not kept: ${errorText(error)}`);
    }
  }
}

const createRefusals = (app: App): Refusals => new Refusals(app);

export const getRefusals = (app: App): Refusals => app.part(createRefusals);
