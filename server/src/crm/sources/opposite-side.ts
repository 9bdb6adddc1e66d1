import type { Core } from '@strapi/strapi';
import { relationInput } from './relation-input';
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

const linkedTo = ({ attribute }: Opposite, params: WriteParams): { where: Where } => {
  // A condition that cannot be nested is replaced by a wider one: what did not change says nothing.
  const nested = params.where && !params.filters && !params._q ? params.where : null;
  return { where: { [attribute]: nested ?? { id: { $notNull: true } } } };
};

const touchOpposite = async (
  strapi: Core.Strapi,
  scope: Scope,
  opposite: Opposite,
  params: WriteParams,
  change: { linked: boolean; ids: readonly (number | string)[] }
): Promise<void> => {
  const { watched, attribute } = opposite;
  const touching = touchingOf(watched, 'update', { [attribute]: [] });
  if (!(await isWanted(scope, watched, touching))) return;
  if (change.linked) {
    for await (const ids of documentIdsOf(strapi, watched.uid, linkedTo(opposite, params))) {
      await touchDocuments(strapi, scope, watched, ids, touching);
    }
  }
  for (let start = 0; start < change.ids.length; start += CHUNK) {
    const where = { id: { $in: change.ids.slice(start, start + CHUNK) } };
    for await (const ids of documentIdsOf(strapi, watched.uid, { where })) {
      await touchDocuments(strapi, scope, watched, ids, touching);
    }
  }
};

/**
 * Notes the records at the other end of a relation that a write edits from this end: a tag that
 * takes contacts on, a company that is deleted.
 */
export const touchOppositeSide = async (
  strapi: Core.Strapi,
  scope: Scope,
  plan: WatchPlan,
  uid: string,
  action: 'create' | 'update' | 'delete',
  params: WriteParams
): Promise<void> => {
  for (const opposite of plan.opposites.get(uid) ?? []) {
    if (action === 'delete') {
      await touchOpposite(strapi, scope, opposite, params, { linked: true, ids: [] });
      continue;
    }
    const value = opposite.inverse ? params.data?.[opposite.inverse] : undefined;
    if (value === undefined) continue;
    const { replaces, ids } = relationInput(value);
    const linked = replaces && action === 'update';
    await touchOpposite(strapi, scope, opposite, params, { linked, ids });
  }
};
