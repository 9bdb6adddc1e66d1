import type { Core } from '@strapi/strapi';
import { connectedIds, relationInput, type RowId } from './relation-input';
import { CHUNK, documentIdsOf, type Where } from './rows';
import type { Scope } from './scope';
import { isWanted, touchDocuments, touchingOf } from './touch';
import type { Opposite, WatchPlan } from './watched';

export interface WriteParams {
  where?: Where;
  filters?: unknown;
  _q?: unknown;
  data?: Record<string, unknown>;
}

const linkedTo = ({ attribute }: Opposite, params: WriteParams): Where => {
  // A condition that cannot be nested is replaced by a wider one: what did not change says nothing.
  const nested = params.where && !params.filters && !params._q ? params.where : null;
  return { [attribute]: nested ?? { id: { $notNull: true } } };
};

const withIds = (ids: readonly RowId[], where: (chunk: Where) => Where): Where[] => {
  const conditions: Where[] = [];
  for (let start = 0; start < ids.length; start += CHUNK) {
    conditions.push(where({ id: { $in: ids.slice(start, start + CHUNK) } }));
  }
  return conditions;
};

/** Notes the watched records that match any of the conditions, because their relation may change. */
const touchEach = async (
  strapi: Core.Strapi,
  scope: Scope,
  { watched, attribute }: Opposite,
  conditions: readonly Where[]
): Promise<void> => {
  if (conditions.length === 0) return;
  const touching = touchingOf(watched, 'update', { [attribute]: [] });
  if (!(await isWanted(scope, watched, touching))) return;
  for (const where of conditions) {
    for await (const ids of documentIdsOf(strapi, watched.uid, { where })) {
      await touchDocuments(strapi, scope, watched, ids, touching);
    }
  }
};

/** Who loses and who gets what, where this end of the relation is edited. */
const endsOf = (opposite: Opposite, action: 'create' | 'update', params: WriteParams): Where[] => {
  const value = opposite.inverse ? params.data?.[opposite.inverse] : undefined;
  if (value === undefined) return [];
  const { replaces, ids } = relationInput(value);
  // An end that has room for one link gives up the one it had, be the new one only "connected".
  const loses = replaces || (opposite.exclusive && connectedIds(value).length > 0);
  return [
    ...(loses && action === 'update' ? [linkedTo(opposite, params)] : []),
    ...withIds(ids, (where) => where),
  ];
};

/** Who loses what the written record takes, where the watched type's own end is edited. */
const rivalsOf = ({ attribute }: Opposite, data: WriteParams['data']): Where[] => {
  const value = data?.[attribute];
  if (value === undefined) return [];
  return withIds(connectedIds(value), (where) => ({ [attribute]: where }));
};

/**
 * Notes the records that a write changes without naming them. At the other end of a relation that it
 * edits: a tag that takes contacts on, a company that is deleted. And at the same end, where a record
 * has one holder at most: the host takes it from the previous one and tells no lifecycle.
 */
export const touchOthers = async (
  strapi: Core.Strapi,
  scope: Scope,
  plan: WatchPlan,
  uid: string,
  action: 'create' | 'update' | 'delete',
  params: WriteParams
): Promise<void> => {
  for (const opposite of plan.opposites.get(uid) ?? []) {
    const conditions =
      action === 'delete' ? [linkedTo(opposite, params)] : endsOf(opposite, action, params);
    await touchEach(strapi, scope, opposite, conditions);
  }
  if (action === 'delete') return;
  for (const rivalry of plan.rivalries.get(uid) ?? []) {
    await touchEach(strapi, scope, rivalry, rivalsOf(rivalry, params.data));
  }
};
