import type { Knex } from 'knex';
import {
  allowedBeside,
  type CappedGroupClaim,
  type ClaimedWithin,
  type ClaimTable,
  type Dialect,
  type GroupCap,
  type GroupClaim,
  isFullWith,
  qualified,
} from './types';
import { type Executor, rawStatement } from '../connection';
import {
  addRowsOnConflict,
  columnTypesOf,
  containsByLike,
  insertOfArrays,
  insertOfValues,
  updateFromValues,
} from './sql';

type Result = { rows: Record<string, unknown>[] };

/** What others hold of the group, in the rows of a claim. */
const OTHERS = 'sb_others';

/**
 * How a transaction begins that claims and does nothing else. What a crash of the server makes it forget is
 * due again, as after a crash of the process: so it does not wait for the disk.
 */
const OF_ITS_OWN = [
  'SET TRANSACTION ISOLATION LEVEL READ COMMITTED',
  'SET LOCAL synchronous_commit TO off',
];

/** Numbers are written into statements that are several at once: those take no parameters. */
const int = (value: number): string => {
  if (!Number.isSafeInteger(value)) throw new TypeError(`${value} is no whole number`);
  return String(value);
};

const text = (value: string): string => `'${value.replaceAll("'", "''")}'`;

const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;

const named = ({ name, schema }: Pick<ClaimTable, 'name' | 'schema'>): string =>
  schema ? `${identifier(schema)}.${identifier(name)}` : identifier(name);

/**
 * Has claims of a group follow one another: the statements after it see what the claim before this one
 * committed. A lock of claims alone: recording locks the rows of groups that fail, and whoever records
 * many groups together would wait for each claim of those. In the order of groups, so that two processes
 * do not wait for each other.
 */
const lockOfClaims = (claims: readonly CappedGroupClaim[]): string => {
  const groups = [...new Set(claims.map(({ claim }) => claim.group))].sort((a, b) => a - b);
  const { name, schema } = (claims[0] as CappedGroupClaim).cap.groups;
  const kind = `hashtext(${text(`switchboard ${schema ?? ''} ${name}`)})`;
  return `SELECT ${groups.map((group) => `pg_advisory_xact_lock(${kind}, ${int(group)})`).join()}`;
};

/**
 * Counts what others hold, and leases what that leaves. How much that is only the statement knows, and
 * with a limit that the planner does not know it may read all that is due: so of two queries with limits
 * of their own one finds nothing, and the rows of the other one are numbered.
 */
const claimBeside = (
  table: ClaimTable,
  { group, now, leaseUntil, owner, limit }: GroupClaim,
  cap: GroupCap
): string => {
  const { atOnce, own, ahead, counted } = cap;
  const ofGroup = `${named(table)} WHERE ${identifier(table.groupColumn)} = ${int(group)}`;
  const left = Math.max(0, atOnce - own);
  const except =
    counted.except.length > 0 ? `AND id NOT IN (${counted.except.map(int).join()})` : '';
  const due = (others: string, most: number): string =>
    `SELECT id, due_at FROM ${ofGroup} AND due_at <= ${int(now)} AND (SELECT leased FROM room) ${others}
     ORDER BY due_at, id LIMIT ${int(most)} FOR UPDATE SKIP LOCKED`;
  return `WITH held AS (
      SELECT count(*) AS leased FROM ${ofGroup}
      AND due_at BETWEEN ${int(counted.from)} AND ${int(counted.until)} AND owner IS NOT NULL ${except}
    ), room AS (
      SELECT leased, greatest(least(${int(limit)}, ${int(left)} - leased),
        CASE leased WHEN 0 THEN ${int(ahead)} ELSE 0 END) AS size FROM held
    ), alone AS (${due('= 0', allowedBeside(0, limit, cap))}
    ), beside AS (${due(`BETWEEN 1 AND ${int(left - 1)}`, Math.min(limit, left))}
    ), claimed AS (
      UPDATE ${named(table)} SET owner = ${text(owner)} || '/' || due_at, due_at = ${int(leaseUntil)} WHERE id IN (
        SELECT id FROM (
          SELECT id, row_number() OVER (ORDER BY due_at, id) AS nth
          FROM (SELECT * FROM alone UNION ALL SELECT * FROM beside) due
        ) numbered WHERE nth <= (SELECT size FROM room)
      ) RETURNING *
    ) SELECT leased AS ${OTHERS}, claimed.* FROM room LEFT JOIN claimed ON true`;
};

/**
 * Together they are one transaction and one way to the server: the locks are held for no longer than the
 * server takes, however busy this process is.
 */
const claimAllWithin = async (
  executor: Executor,
  table: ClaimTable,
  claims: readonly CappedGroupClaim[]
): Promise<ClaimedWithin[]> => {
  const before = [
    ...((executor as Knex.Transaction).isTransaction ? [] : OF_ITS_OWN),
    lockOfClaims(claims),
  ];
  const statements = [...before, ...claims.map(({ claim, cap }) => claimBeside(table, claim, cap))];
  const answers = await rawStatement(executor, statements.join('; '), []);
  const results = (answers as unknown as Result[]).slice(before.length);
  return claims.map(({ claim, cap }, at) => {
    const found = results[at]?.rows ?? [];
    const others = Number(found[0]?.[OTHERS] ?? 0);
    const rows = found.filter(({ id }) => id !== null);
    const allowed = allowedBeside(others, claim.limit, cap);
    return {
      rows,
      isFull: isFullWith(others, rows.length, allowed, cap),
      isAlone: others === 0,
    };
  });
};

export const postgres: Dialect = {
  async insert(executor, target, rows) {
    const { sql, bindings } =
      rows.length === 1
        ? insertOfValues(target, rows)
        : insertOfArrays(target, await columnTypesOf(executor, target), rows);
    await rawStatement(executor, sql, bindings);
  },

  waitingGroups(table, after, limit) {
    const name = qualified(table);
    const { groupColumn } = table;
    const next = (than: string): string =>
      `SELECT ?? AS id, due_at FROM ?? WHERE ?? > ${than} AND due_at > 0 ORDER BY ??, due_at LIMIT 1`;
    const names = [groupColumn, name, groupColumn];
    return {
      sql: `WITH RECURSIVE found(id, due_at, nth) AS (
         (SELECT first.id, first.due_at, 1 FROM (${next('?')}) first)
         UNION ALL
         SELECT following.id, following.due_at, found.nth + 1
         FROM found CROSS JOIN LATERAL (${next('found.id')}) following WHERE found.nth < ${limit}
       ) SELECT id, due_at, 1 AS looked_at FROM found`,
      bindings: [...names, after, groupColumn, ...names, groupColumn],
    };
  },

  async claimGroup(executor, table, { group, now, leaseUntil, owner, limit }) {
    const name = qualified(table);
    const result = await (executor as Knex).raw<Result>(
      `UPDATE ?? SET owner = ?::text || '/' || due_at, due_at = ? WHERE id IN (
         SELECT id FROM ?? WHERE ?? = ? AND due_at <= ? ORDER BY due_at, id LIMIT ?
         FOR UPDATE SKIP LOCKED
       ) RETURNING *`,
      [name, owner, leaseUntil, name, table.groupColumn, group, now, limit]
    );
    return result.rows;
  },

  async claimWithin(executor, table, claim, cap) {
    const [answer] = await claimAllWithin(executor, table, [{ claim, cap }]);
    return answer as ClaimedWithin;
  },

  claimAllWithin,

  async claimGroups(executor, table, { groups, now, leaseUntil, owner }) {
    const name = qualified(table);
    const result = await (executor as Knex).raw<Result>(
      `UPDATE ?? SET owner = ?::text || '/' || due_at, due_at = ? WHERE id IN (
         SELECT due.id FROM unnest(?::int[], ?::int[]) AS room(id, rows) CROSS JOIN LATERAL (
           SELECT id FROM ?? WHERE ?? = room.id AND due_at <= ? ORDER BY due_at, id LIMIT room.rows
           FOR UPDATE SKIP LOCKED
         ) due
       ) RETURNING *`,
      [
        name,
        owner,
        leaseUntil,
        groups.map(({ group }) => group),
        groups.map(({ limit }) => limit),
        name,
        table.groupColumn,
        now,
      ] as unknown as Knex.RawBinding[]
    );
    return result.rows;
  },

  async updateRows(executor, table, rows) {
    if (rows.length === 0) return new Set();
    const { sql, bindings } = updateFromValues(table, rows, true);
    const result = (await rawStatement(executor, sql, bindings as Knex.RawBinding[])) as Result;
    return new Set(result.rows.map((row) => Number(row.id)));
  },

  contains: containsByLike,

  addRows: addRowsOnConflict,
};
