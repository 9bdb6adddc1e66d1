import { createWriteStream } from 'node:fs';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { z } from '@strapi/utils';
import type { Context } from 'koa';
import type { FileKind } from '../../../shared/contracts/imports';
import { nameOfAdminUser } from '../access/current-admin-user';
import { leavingPostsUnparsed, typeOfUnparsed } from '../http/bounded-body';
import { fieldError, flag, parseInput } from '../http/validation';
import { logFailure } from '../runtime/text';
import type { ImportRun } from '../public';
import { ImportTracker, readJob } from './jobs';
import { countRows } from './read-csv';
import type { App } from '../app';

/**
 * Spools a request body to a temporary file and works on that: Node allows a request five minutes to arrive, and
 * reading at the pace of the work may take longer. Errors of body or disk are thrown before any work begins.
 * @param work is given the file as a stream, and its name
 */
export const withSpooled = async <T>(
  body: Readable,
  work: (file: Readable, name: string) => Promise<T>
): Promise<T> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'switchboard-'));
  try {
    const name = path.join(folder, 'body');
    await pipeline(body, createWriteStream(name, { mode: 0o600 }));
    // Opened before it is handed over: a stream that opens after its file is gone would end the process.
    const file = (await open(name)).createReadStream();
    try {
      return await work(file, name);
    } finally {
      file.destroy();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

const PATH = /^\/switchboard\/(contacts|items)\/import$/;
const TYPES = /^(text\/csv|application\/csv|application\/vnd\.ms-excel|text\/plain)\b/i;

export const uploadQuery = z.object({ dry_run: flag.default(false), wait: flag.default(true) });

/** Leaves a file to its route; the host's body parser would read all of it into memory. */
export const leaveImportsUnread = leavingPostsUnparsed((path) => PATH.test(path));

/**
 * Answers a file upload: with the report after the import, or with 202 after the header for `?wait=false`.
 * @throws ValidationError (400) if it is no CSV file, is not UTF-8, or its header is wrong
 */
export const answerUpload = async <Report extends object>(
  app: App,
  ctx: Context,
  kind: FileKind,
  run: (file: Readable, options: ImportRun) => Promise<Report>
): Promise<void> => {
  const { dry_run: dryRun, wait } = parseInput(uploadQuery, ctx.query);
  if (!TYPES.test(typeOfUnparsed(ctx.req))) {
    throw fieldError('content-type', 'send the file as the body, with the type text/csv');
  }
  const tracker = new ImportTracker(app, { kind, dryRun, madeBy: nameOfAdminUser(ctx) });
  const work = withSpooled(ctx.req as Readable, async (file, name) => {
    try {
      // Nothing is imported of a file that is found unreadable in its last line.
      tracker.rows = await countRows(name);
      const report = await run(file, { dryRun, watch: tracker });
      await tracker.finish();
      return report;
    } catch (error) {
      // The database that failed may be away still; then the import is found to have been lost.
      await tracker.fail(error).catch(() => undefined);
      throw error;
    }
  });
  if (wait) {
    const report = await work;
    const { job } = await readJob(app, await tracker.started);
    ctx.body = { data: { ...job, ...report } };
    return;
  }
  const id = await Promise.race([tracker.started, work.then(() => tracker.started)]);
  work.catch(logFailure(app, `the import ${id} ended early`));
  ctx.body = { data: (await readJob(app, id)).job };
  ctx.status = 202;
};
