import Database from 'better-sqlite3';

const HOUR = 3_600_000;
const SETTLED_MS = 60_000;
/** Clocks and what rounds to seconds; what was moved lies hours before it. */
const MARGIN_MS = 2_000;

/** Columns with times in epoch milliseconds. */
const TIMES = {
  switchboard_attempts: ['at'],
  switchboard_deliveries: ['created_at', 'finished_at'],
  switchboard_delivery_queue: ['created_at'],
  switchboard_messages: ['created_at'],
  switchboard_journal: ['created_at'],
  switchboard_tags: ['created_at', 'updated_at'],
  switchboard_companies: ['created_at', 'updated_at'],
  switchboard_deal_stages: ['created_at', 'updated_at'],
  switchboard_contacts: ['created_at', 'updated_at', 'subscribed_at', 'unsubscribed_at'],
  switchboard_deals: ['created_at', 'updated_at', 'closed_at'],
  switchboard_tasks: ['created_at', 'updated_at', 'completed_at'],
  switchboard_campaigns: ['created_at', 'updated_at', 'sent_at'],
};
/** Columns with JSON that is sent, in rows that have a `created_at`. */
const TEXTS = {
  switchboard_deliveries: ['body'],
  switchboard_messages: ['frame', 'data'],
  switchboard_journal: ['frame', 'data'],
};
const ROLLUPS = 'switchboard_delivery_rollups';
const TIME_IN_TEXT = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?=(?:\.\d+)?(?:Z|\+00:00))/g;
/** Times of the second and later attempts, in seconds after the one before: webhooks.retryScheduleSeconds. */
const SCHEDULE = [60, 300, 1800, 7200, 21_600, 43_200];

/** A text with the times that are not before `from` moved back, all by whole hours. */
const movedText = (text, from, by) =>
  text.replace(TIME_IN_TEXT, (time) => {
    const at = Date.parse(`${time}Z`);
    if (at < from || at > Date.now() + HOUR) return time;
    return new Date(at - by).toISOString().slice(0, time.length);
  });

const moveTexts = (db, from, by) => {
  for (const [table, columns] of Object.entries(TEXTS)) {
    for (const row of db.prepare(`SELECT * FROM ${table} WHERE created_at >= ?`).all(from)) {
      for (const column of columns.filter((one) => typeof row[one] === 'string')) {
        const text = movedText(row[column], from, by);
        db.prepare(`UPDATE ${table} SET ${column} = ? WHERE id = ?`).run(text, row.id);
      }
    }
  }
};

const moveTimes = (db, from, by) => {
  for (const [table, columns] of Object.entries(TIMES)) {
    for (const column of columns) {
      db.prepare(`UPDATE ${table} SET ${column} = ${column} - ? WHERE ${column} >= ?`).run(
        by,
        from
      );
    }
  }
};

const insert = (db, table, row) => {
  const names = Object.keys(row);
  const places = names.map((name) => `@${name}`).join(', ');
  db.prepare(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${places})`).run(row);
};

const hourOf = (time) => Math.floor(time / HOUR) * HOUR;

/** Counts of an hour join those of the hour that they belong to. */
const moveRollups = (db, from, by) => {
  const find = db.prepare(`SELECT * FROM ${ROLLUPS} WHERE webhook_id = ? AND hour = ?`);
  const remove = db.prepare(`DELETE FROM ${ROLLUPS} WHERE webhook_id = ? AND hour = ?`);
  for (const row of db.prepare(`SELECT * FROM ${ROLLUPS} WHERE hour >= ?`).all(hourOf(from))) {
    const { webhook_id, hour, ...counts } = row;
    const there = find.get(webhook_id, hour - by) ?? {};
    for (const name of Object.keys(counts)) counts[name] += there[name] ?? 0;
    for (const one of [hour, hour - by]) remove.run(webhook_id, one);
    insert(db, ROLLUPS, { webhook_id, hour: hour - by, ...counts });
  }
};

/** An hour's counts grow by those of one more try, which was answered as the first one was. */
const countTry = (db, { webhook_id: webhook, at: first }, at, isLast) => {
  const find = db.prepare(`SELECT * FROM ${ROLLUPS} WHERE webhook_id = ? AND hour = ?`);
  const span = Object.entries(find.get(webhook, hourOf(first)) ?? {}).find(
    ([name, count]) => name.startsWith('span_') && count > 0
  );
  const counts = ['failed', ...(span ? [span[0]] : []), ...(isLast ? ['ended_failed'] : [])];
  if (!find.get(webhook, hourOf(at))) {
    db.prepare(`INSERT INTO ${ROLLUPS} (webhook_id, hour) VALUES (?, ?)`).run(webhook, hourOf(at));
  }
  db.prepare(
    `UPDATE ${ROLLUPS} SET ${counts.map((name) => `${name} = ${name} + 1`).join(', ')}
     WHERE webhook_id = ? AND hour = ?`
  ).run(webhook, hourOf(at));
};

/** As the queue has what failed: `QUEUE_STATES` and `SECTIONS` of the server. */
const ENDED = 3;
const FAILED = 2;

/** The tries that are left of a delivery, each as its first one and when it was due. */
const failAllTries = (db, delivery) => {
  const first = db
    .prepare('SELECT * FROM switchboard_attempts WHERE delivery_id = ? ORDER BY id')
    .get(delivery.id);
  const { id: _id, ...attempt } = first;
  let at = first.at;
  for (const [index, seconds] of SCHEDULE.entries()) {
    at += seconds * 1000;
    insert(db, 'switchboard_attempts', { ...attempt, at });
    countTry(db, first, at, index === SCHEDULE.length - 1);
  }
  db.prepare(
    `UPDATE switchboard_deliveries
     SET status = 'failed', tries = ?, finished_at = ?, next_attempt_at = NULL
     WHERE id = ?`
  ).run(SCHEDULE.length + 1, at + first.duration_ms, delivery.id);
  db.prepare('UPDATE switchboard_delivery_queue SET state = ?, section = ? WHERE id = ?').run(
    ENDED,
    FAILED,
    delivery.id
  );
};

/**
 * Gives a playground a past: what was done and sent just now is moved to when it is to have been.
 * Only for demonstrations: it writes into the tables of a site that runs, in short transactions.
 * @param {string} file  the site's SQLite database
 */
export const openHistory = (file) => {
  const db = new Database(file, { fileMustExist: true, timeout: 10_000 });
  const open = db.prepare(
    `SELECT count(*) AS n FROM switchboard_delivery_queue
     WHERE state <> ${ENDED} AND (error IS NULL OR owner IS NOT NULL)`
  );
  return {
    /** Waits until every delivery was tried. */
    async settled() {
      const until = Date.now() + SETTLED_MS;
      while (open.get().n > 0) {
        if (Date.now() > until)
          throw new Error('The events of the week were not sent in a minute.');
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },

    /**
     * @param {number} since  epoch milliseconds: what is not before it is moved
     * @param {number} by  milliseconds, whole hours
     */
    moveBack(since, by) {
      const from = since - MARGIN_MS;
      db.transaction(() => {
        moveTexts(db, from, by);
        moveTimes(db, from, by);
        moveRollups(db, from, by);
      }).immediate();
    },

    /** Ages the pending deliveries of a webhook until all their attempts have failed. */
    giveUp(webhookId) {
      db.transaction(() => {
        const pending = db
          .prepare(
            "SELECT * FROM switchboard_deliveries WHERE webhook_id = ? AND status = 'pending' AND error IS NOT NULL"
          )
          .all(webhookId);
        for (const delivery of pending) failAllTries(db, delivery);
      }).immediate();
    },

    close: () => db.close(),
  };
};
