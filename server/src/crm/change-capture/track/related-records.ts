import { connectedIds, relationInput, type RowId } from '../mapping/relation-input';
import { documentIdsOf, inChunks, type Where } from '../../../database/matching-documents';
import { type WriteEvent, writtenRows } from '../../../database/written-rows';
import type { WatchedRelation, WatchPlan } from '../../mapping/watched-types';
import { impactOf, isSubscribed, trackDocuments } from '../../capture/tracked-changes';
import type { WriteContext } from '../../capture/write-context';

type Data = Record<string, unknown>;
type Action = 'create' | 'update' | 'delete';

const withIds = (ids: readonly RowId[]): Where[] =>
  inChunks(ids).map((chunk) => ({ id: { $in: chunk } }));

/** What a write edits of a relation's other end; null: nothing. */
interface EditedEnd {
  /** Records that are linked to a written one may lose it. */
  unlinks: boolean;
  /** Records that are named. */
  ids: readonly RowId[];
}

const editedEnd = (relation: WatchedRelation, action: Action, data: Data): EditedEnd | null => {
  if (action === 'delete') return { unlinks: true, ids: [] };
  const value = relation.inverse ? data[relation.inverse] : undefined;
  if (value === undefined) return null;
  const { replaces, ids } = relationInput(value);
  // An end that has room for one link gives up the one it had, even where one is only "connected".
  const unlinks = replaces || (relation.exclusive && connectedIds(value).length > 0);
  return { unlinks: unlinks && action === 'update', ids };
};

const linked = ({ attribute }: WatchedRelation, wheres: readonly Where[]): Where[] =>
  wheres.map((where) => ({ [attribute]: where }));

const isHeard = ({ watched, attribute }: WatchedRelation, context: WriteContext) =>
  isSubscribed(context, watched, impactOf(watched, 'update', { [attribute]: [] }));

/** Tracks the watched records that match any of the conditions: their relation may change. */
const trackWhere = async (
  context: WriteContext,
  { watched, attribute }: WatchedRelation,
  conditions: readonly Where[]
): Promise<void> => {
  const impact = impactOf(watched, 'update', { [attribute]: [] });
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
 * a lifecycle. The written rows are locked first: whoever links a record to one that is being deleted
 * waits, or has done so before the records are looked for.
 */
export const trackRelated = async (
  context: WriteContext,
  plan: WatchPlan,
  action: Action,
  event: WriteEvent,
  data: Data
): Promise<void> => {
  const { uid } = event.model;
  for (const relation of plan.relationsByTarget.get(uid) ?? []) {
    const edited = editedEnd(relation, action, data);
    if (!edited || !(await isHeard(relation, context))) continue;
    const written = edited.unlinks ? await writtenRows(context.strapi, event) : [];
    const unlinked = linked(relation, withIds(written.map(({ id }) => id)));
    const conditions = [...unlinked, ...withIds(edited.ids)];
    await trackWhere(context, relation, conditions);
  }
  if (action === 'delete') return;
  for (const relation of plan.exclusiveRelations.get(uid) ?? []) {
    const value = data[relation.attribute];
    const ids = value === undefined ? [] : connectedIds(value);
    // Records that lose a link because the write gives it to another record of their own type.
    if (ids.length === 0 || !(await isHeard(relation, context))) continue;
    await trackWhere(context, relation, linked(relation, withIds(ids)));
  }
};
