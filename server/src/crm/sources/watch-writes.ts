import type { Core } from '@strapi/strapi';
import type { Entry } from './mapping';
import { touchOthers, type WriteParams } from './unnamed-records';
import { currentScope, type Scope } from './scope';
import { isWanted, touchDocuments, touchingOf, touchMatching } from './touch';
import type { WatchedSource, WatchPlan } from './watched';

interface LifecycleEvent {
  model: { uid: string };
  params: WriteParams & { select?: unknown };
  result?: unknown;
}

interface BulkCreateEvent {
  model: { uid: string };
  params: { data?: Record<string, unknown>[] };
}

/** A new record gets its document id here, so that it is known without asking (MySQL tells none). */
const identify = (
  strapi: Core.Strapi,
  uid: string,
  data: Record<string, unknown>
): { id: string; isNew: boolean } => {
  if (typeof data.documentId === 'string') return { id: data.documentId, isNew: false };
  const attribute = strapi.db.metadata.get(uid).attributes.documentId as { default?: () => string };
  const id = attribute.default?.() ?? '';
  data.documentId = id;
  return { id, isNew: true };
};

const touchCreated = async (
  strapi: Core.Strapi,
  scope: Scope,
  watched: WatchedSource,
  rows: readonly Record<string, unknown>[]
): Promise<void> => {
  const known: string[] = [];
  for (const data of rows) {
    const { id, isNew } = identify(strapi, watched.uid, data);
    const { tags } = touchingOf(watched, 'create', data);
    const touches = scope.touches(watched);
    if (isNew) touches.set(id, { before: null, tags, row: null, unknown: false });
    else known.push(id);
  }
  // A further row (a published one, another language) of a document that may exist.
  const touching = { ...touchingOf(watched, 'update', null), tags: watched.source.tags !== null };
  await touchDocuments(strapi, scope, watched, known, touching);
};

/** Whether the row that the host returns from a create is all there is to know of the record. */
const isComplete = (
  scope: Scope,
  watched: WatchedSource,
  params: LifecycleEvent['params']
): boolean =>
  !scope.compound &&
  !watched.draftAndPublish &&
  !watched.localized &&
  !watched.components &&
  !params.select &&
  watched.source.fields.every(({ shape }) => shape?.type !== 'media') &&
  watched.relations.every((name) => (params.data?.[name] ?? null) === null);

const keepRow = (scope: Scope, watched: WatchedSource, event: LifecycleEvent): void => {
  const { params, result } = event;
  const touch = scope.touches(watched).get(String(params.data?.documentId));
  if (!touch || !result || !isComplete(scope, watched, params)) return;
  const row: Entry = { ...(result as Entry) };
  for (const name of watched.relations) delete row[name];
  touch.row = row;
};

/**
 * Hears of every write to a watched type, single and bulk, from wherever it comes. It only notes in
 * the current scope what is about to change; comparing and publishing is the scope's end.
 * @returns a function that stops listening.
 */
export const watchWrites = (strapi: Core.Strapi, plan: WatchPlan): (() => void) => {
  const watchedOf = (uid: string): readonly WatchedSource[] => plan.byUid.get(uid) ?? [];

  const beforeCreate = async (uid: string, rows: Record<string, unknown>[]): Promise<void> => {
    const scope = currentScope();
    if (!scope) return;
    for (const watched of watchedOf(uid)) {
      const touching = touchingOf(watched, 'create', null);
      if (await isWanted(scope, watched, touching))
        await touchCreated(strapi, scope, watched, rows);
    }
    for (const data of rows) {
      await touchOthers(strapi, scope, plan, uid, 'create', { data });
    }
  };

  const beforeChange = async (
    action: 'update' | 'delete',
    { model: { uid }, params }: LifecycleEvent
  ): Promise<void> => {
    const scope = currentScope();
    if (!scope) return;
    for (const watched of watchedOf(uid)) {
      const data = action === 'update' ? (params.data ?? {}) : null;
      const touching = touchingOf(watched, action, data);
      if (await isWanted(scope, watched, touching)) {
        await touchMatching(strapi, scope, watched, params, touching);
      }
    }
    await touchOthers(strapi, scope, plan, uid, action, params);
  };

  const subscriber = {
    models: [...plan.uids],
    beforeCreate: ({ model, params }: LifecycleEvent) =>
      beforeCreate(model.uid, params.data ? [params.data] : []),
    afterCreate(event: LifecycleEvent) {
      const scope = currentScope();
      if (!scope) return;
      for (const watched of watchedOf(event.model.uid)) keepRow(scope, watched, event);
    },
    beforeCreateMany: ({ model, params }: BulkCreateEvent) =>
      beforeCreate(model.uid, Array.isArray(params.data) ? params.data : []),
    beforeUpdate: (event: LifecycleEvent) => beforeChange('update', event),
    beforeUpdateMany: (event: LifecycleEvent) => beforeChange('update', event),
    beforeDelete: (event: LifecycleEvent) => beforeChange('delete', event),
    beforeDeleteMany: (event: LifecycleEvent) => beforeChange('delete', event),
  };
  return strapi.db.lifecycles.subscribe(
    subscriber as unknown as Parameters<typeof strapi.db.lifecycles.subscribe>[0]
  );
};
