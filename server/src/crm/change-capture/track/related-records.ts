import { connectedIds, relationInput, type RowId } from '../mapping/relation-input';
import { documentIdsOf, inChunks, type Where } from '../../../database/matching-documents';
import type { WatchedRelation, WatchPlan } from '../mapping/watched-types';
import { impactOf, isSubscribed, trackDocuments } from './tracked-changes';
import type { WriteContext } from './write-context';

export interface WriteParams {
  where?: Where;
  filters?: unknown;
  _q?: unknown;
  data?: Record<string, unknown>;
}

const withIds = (ids: readonly RowId[]): Where[] =>
  inChunks(ids).map((chunk) => ({ id: { $in: chunk } }));

/** Records that are linked to one that the write's own condition matches. */
const linkedToWritten = ({ attribute }: WatchedRelation, params: WriteParams): Where => {
  // A condition that cannot be nested gives way to a wider one: what does not change has no event.
  const nested = params.where && !params.filters && !params._q ? params.where : null;
  return { [attribute]: nested ?? { id: { $notNull: true } } };
};

/** Records whose relation changes because the write edits its other end. */
const changedFromOtherEnd = (
  relation: WatchedRelation,
  action: 'create' | 'update',
  params: WriteParams
): Where[] => {
  const value = relation.inverse ? params.data?.[relation.inverse] : undefined;
  if (value === undefined) return [];
  const { replaces, ids } = relationInput(value);
  // An end that has room for one link gives up the one it had, even where one is only "connected".
  const unlinks = replaces || (relation.exclusive && connectedIds(value).length > 0);
  return unlinks && action === 'update'
    ? [linkedToWritten(relation, params), ...withIds(ids)]
    : withIds(ids);
};

/** Records that lose a link because the write gives it to another record of their own type. */
const losingToWritten = ({ attribute }: WatchedRelation, { data }: WriteParams): Where[] => {
  const value = data?.[attribute];
  if (value === undefined) return [];
  return withIds(connectedIds(value)).map((where) => ({ [attribute]: where }));
};

/** Tracks the watched records that match any of the conditions: their relation may change. */
const trackWhere = async (
  context: WriteContext,
  { watched, attribute }: WatchedRelation,
  conditions: readonly Where[]
): Promise<void> => {
  if (conditions.length === 0) return;
  const impact = impactOf(watched, 'update', { [attribute]: [] });
  if (!(await isSubscribed(context, watched, impact))) return;
  for (const where of conditions) {
    for await (const ids of documentIdsOf(context.strapi, watched.uid, { where })) {
      await trackDocuments(context, watched, ids, impact);
    }
  }
};

/**
 * Tracks the records that a write changes without naming them. They are at the other end of a
 * relation that it edits: a tag that takes contacts on, a company that is deleted. Or they are at the
 * same end, where a record has one holder at most: the host takes it from the previous holder without
 * a lifecycle.
 */
export const trackRelated = async (
  context: WriteContext,
  plan: WatchPlan,
  uid: string,
  action: 'create' | 'update' | 'delete',
  params: WriteParams
): Promise<void> => {
  for (const relation of plan.relationsByTarget.get(uid) ?? []) {
    const conditions =
      action === 'delete'
        ? [linkedToWritten(relation, params)]
        : changedFromOtherEnd(relation, action, params);
    await trackWhere(context, relation, conditions);
  }
  if (action === 'delete') return;
  for (const relation of plan.exclusiveRelations.get(uid) ?? []) {
    await trackWhere(context, relation, losingToWritten(relation, params));
  }
};
