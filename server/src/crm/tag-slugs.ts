import { createHash } from 'node:crypto';
import { errors } from '@strapi/utils';
import { isDuplicate } from '../database/retry';
import { fieldError } from '../http/validation';
import type { App } from '../app';

export const TAG = 'plugin::switchboard.tag';
const TABLE = 'switchboard_tags';
const SLUG_MAX = 255;

/** What the database compares for uniqueness: a digest, because collations differ. */
export const slugKey = (slug: unknown): string | null =>
  typeof slug === 'string' && slug !== '' ? createHash('sha256').update(slug).digest('hex') : null;

/** What the databases say of the unique index: its name, or on SQLite its column. */
const CONFLICT = /switchboard_tags_slug\b|switchboard_tags\.slug_key\b/;

const slugTaken = (): errors.ValidationError => fieldError('slug', 'belongs to another tag');

/** Whether a tag was refused for its slug, by the host's own look or by the index. */
export const isSlugTaken = (error: unknown): boolean => {
  if (isDuplicate(error, CONFLICT)) return true;
  if (!(error instanceof errors.ValidationError)) return false;
  const { errors: found } = error.details as {
    errors?: { path?: unknown[]; message?: string }[];
  };
  return (found ?? []).some(
    ({ path, message }) => path?.[0] === 'slug' && /unique|another tag/.test(message ?? '')
  );
};

/** Answers a second tag of one slug, which only the index has seen, with what a person can read. */
export const refuseTakenSlugs = (app: App): void => {
  app.strapi.documents.use(async (context, next) => {
    if (context.uid !== TAG) return next();
    try {
      return await next();
    } catch (error) {
      throw isDuplicate(error, CONFLICT) ? slugTaken() : error;
    }
  });
};

interface Row {
  id: number;
  slug: string;
}

const rows = (app: App) => app.db.pool.table(TABLE);

/** @returns whether nobody else has the slug; a row that somebody has changed meanwhile is left alone */
const take = async (app: App, { id, slug }: Row, wanted: string): Promise<boolean> => {
  try {
    await rows(app)
      .where({ id, slug })
      .whereNull('slug_key')
      .update({ slug: wanted, slug_key: slugKey(wanted) });
    return true;
  } catch (error) {
    if (!isDuplicate(error, CONFLICT)) throw error;
    return false;
  }
};

const settle = async (app: App, row: Row): Promise<void> => {
  if (await take(app, row, row.slug)) return;
  for (let nth = 1; ; nth += 1) {
    const end = `-${nth}`;
    const wanted = `${row.slug.slice(0, SLUG_MAX - end.length)}${end}`;
    if (await rows(app).where({ slug: wanted }).first('id')) continue;
    if (!(await take(app, row, wanted))) continue;
    app.log.warn(
      `switchboard: two tags had the slug ${JSON.stringify(row.slug)}; tag ${row.id} has ${JSON.stringify(wanted)} now`
    );
    return;
  }
};

const AT_ONCE = 200;

/**
 * Gives tags that an earlier version made their unique key, at every boot: a node of that version may
 * still make some. The second tag of a slug gets another one. Each row by itself, so it may be ended
 * at any moment, and several nodes may do it at once.
 */
export const settleTagSlugs = async (app: App): Promise<void> => {
  let last = 0;
  for (;;) {
    const found = (await rows(app)
      .select('id', 'slug')
      .where('id', '>', last)
      .whereNull('slug_key')
      .whereNotNull('slug')
      .andWhere('slug', '<>', '')
      .orderBy('id')
      .limit(AT_ONCE)) as Row[];
    for (const row of found) await settle(app, row);
    const tail = found.at(-1);
    if (!tail || found.length < AT_ONCE) return;
    last = Number(tail.id);
  }
};
