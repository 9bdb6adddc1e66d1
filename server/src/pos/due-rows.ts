import { setTimeout as sleep } from 'node:timers/promises';
import type { App } from '../app';
import { createFaultLog, isInfrastructureFault, withTransientRetry } from '../database/retry';
import { BackgroundWork } from '../runtime/event-loop';
import type { Big } from '../stock/tables';

interface DueRow {
  event_id: number;
  due_at: Big | null;
}

interface Work<Row extends DueRow> {
  tableName: string;
  /** The columns to read besides `event_id` and `due_at`. */
  columns: readonly (keyof Row & string)[];
  /** Handles a due row in its own transaction and clears `due_at`; does nothing if another node has cleared it. */
  work: (row: Row) => Promise<void>;
  /** The changes of a row that failed, for any reason. */
  failed: (row: Row, error: unknown) => Partial<Row> & { due_at: number };
  /** It rests between two rows for as long as the first one took, up to this. */
  longestRestMs: number;
  /** The work left undone if the database is away, for the log. */
  fault: string;
}

const AT_ONCE = 50;

/** Works on the rows of a table whose `due_at` has come: in the background, one after the other. */
export class DueRows<Row extends DueRow> {
  private readonly background: BackgroundWork;
  private isStarted = false;

  constructor(
    private readonly app: App,
    private readonly rows: Work<Row>
  ) {
    const logFault = createFaultLog(app.log);
    this.background = new BackgroundWork({
      detached: app.detached,
      pass: (isStopped) => this.workOnDue(isStopped),
      failed: (error) => logFault(`switchboard: ${rows.fault}`, error),
    });
  }

  /** On a node that processes records; others only write down what is due. */
  start(): void {
    this.isStarted = true;
    this.wake();
  }

  /** For the moment after a commit, and by the clock. Never throws. */
  wake(): void {
    if (this.isStarted) this.background.wake();
  }

  /** Lets the one under way commit. */
  stop(): Promise<void> {
    return this.background.stop();
  }

  async workOnDue(isStopped: () => boolean = () => false): Promise<void> {
    const { tableName, columns, longestRestMs } = this.rows;
    for (;;) {
      const db = await this.app.db.current();
      const due: Row[] = await db
        .table(tableName)
        .select('event_id', 'due_at', ...columns)
        .where('due_at', '<=', this.app.clock.now())
        .orderBy('due_at')
        .limit(AT_ONCE);
      if (due.length === 0) return;
      for (const row of due) {
        if (isStopped()) return;
        const startedAt = performance.now();
        await this.workOn(row);
        await sleep(Math.min(performance.now() - startedAt, longestRestMs));
      }
    }
  }

  /** One whose own fault it is does not stop the others. */
  private async workOn(row: Row): Promise<void> {
    try {
      await withTransientRetry(() => this.rows.work(row));
    } catch (error) {
      if (isInfrastructureFault(error)) throw error;
      const { event_id, due_at } = row;
      const db = await this.app.db.current();
      // Not over what made it due again meanwhile.
      await db
        .table(this.rows.tableName)
        .where({ event_id, due_at })
        .update(this.rows.failed(row, error));
    }
  }
}
