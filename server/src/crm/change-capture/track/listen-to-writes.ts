import type { Core } from '@strapi/strapi';
import { giveDocumentId } from '../../../database/matching-documents';
import type { WriteEvent } from '../../../database/written-rows';
import type { Entry } from '../../mapping/mapping';
import type { WatchedSource, WatchPlan } from '../../mapping/watched-types';
import { trackRelated } from './related-records';
import {
  impactOf,
  isSubscribed,
  newRecord,
  trackGiven,
  trackMatching,
} from '../../capture/tracked-changes';
import { trackedWrite, type WriteContext } from '../../capture/write-context';

type Data = Record<string, unknown>;

interface LifecycleEvent extends WriteEvent {
  params: WriteEvent['params'] & { data?: Data; select?: unknown };
  result?: unknown;
}

interface BulkCreateEvent extends WriteEvent {
  params: { data?: Data[] };
}

const trackCreated = async (
  context: WriteContext,
  watched: WatchedSource,
  rows: readonly Data[]
): Promise<void> => {
  const changes = context.changesOf(watched);
  const given: string[] = [];
  for (const data of rows) {
    if (typeof data.documentId === 'string') {
      given.push(data.documentId);
    } else {
      const { tags } = impactOf(watched, 'create', data);
      changes.set(giveDocumentId(context.strapi, watched.uid, data), newRecord(tags));
    }
  }
  const impact = { ...impactOf(watched, 'update', null), tags: watched.source.tags !== null };
  await trackGiven(context, watched, given, impact);
};

/** Whether the row that the host returns from a create is all there is to know of the record. */
const isComplete = (
  context: WriteContext,
  watched: WatchedSource,
  params: LifecycleEvent['params']
): boolean =>
  !context.compound &&
  !watched.draftAndPublish &&
  !watched.localized &&
  !watched.components &&
  !params.select &&
  watched.source.fields.every(({ shape }) => shape?.type !== 'media') &&
  watched.relations.every((name) => (params.data?.[name] ?? null) === null);

/** Keeps the row that a create returned, so that comparing does not read it again. */
const keepRow = (context: WriteContext, watched: WatchedSource, event: LifecycleEvent): void => {
  const { params, result } = event;
  const change = context.changesOf(watched).get(String(params.data?.documentId));
  if (!change || !result || !isComplete(context, watched, params)) return;
  const row: Entry = { ...(result as Entry) };
  for (const name of watched.relations) delete row[name];
  change.row = row;
};

/**
 * Hears of every write to a watched type, single and bulk, from wherever it comes. It only tracks
 * what is about to change; comparing and publishing come at the end of the unit of work.
 * @returns a function that stops listening.
 */
export const watchWrites = (strapi: Core.Strapi, plan: WatchPlan): (() => void) => {
  const sourcesOf = (uid: string): readonly WatchedSource[] => plan.byUid.get(uid) ?? [];

  const beforeCreate = async (event: WriteEvent, rows: Data[]): Promise<void> => {
    const context = trackedWrite();
    if (!context) return;
    const { uid } = event.model;
    for (const watched of sourcesOf(uid)) {
      const impact = impactOf(watched, 'create', null);
      if (await isSubscribed(context, watched, impact)) await trackCreated(context, watched, rows);
    }
    for (const data of rows) await trackRelated(context, plan, 'create', event, data);
  };

  const beforeChange = async (
    action: 'update' | 'delete',
    event: LifecycleEvent
  ): Promise<void> => {
    const context = trackedWrite();
    if (!context) return;
    const { model, params } = event;
    const { uid } = model;
    for (const watched of sourcesOf(uid)) {
      const impact = impactOf(watched, action, action === 'update' ? (params.data ?? {}) : null);
      if (await isSubscribed(context, watched, impact)) {
        await trackMatching(context, watched, event, impact);
      }
    }
    await trackRelated(context, plan, action, event, params.data ?? {});
  };

  const afterCreate = (event: LifecycleEvent): void => {
    const context = trackedWrite();
    if (!context) return;
    for (const watched of sourcesOf(event.model.uid)) keepRow(context, watched, event);
  };

  const subscriber = {
    models: [...plan.uids],
    beforeCreate: (event: LifecycleEvent) =>
      beforeCreate(event, event.params.data ? [event.params.data] : []),
    afterCreate,
    beforeCreateMany: (event: BulkCreateEvent) =>
      beforeCreate(event, Array.isArray(event.params.data) ? event.params.data : []),
    beforeUpdate: (event: LifecycleEvent) => beforeChange('update', event),
    beforeUpdateMany: (event: LifecycleEvent) => beforeChange('update', event),
    beforeDelete: (event: LifecycleEvent) => beforeChange('delete', event),
    beforeDeleteMany: (event: LifecycleEvent) => beforeChange('delete', event),
  };
  return strapi.db.lifecycles.subscribe(
    subscriber as unknown as Parameters<typeof strapi.db.lifecycles.subscribe>[0]
  );
};
