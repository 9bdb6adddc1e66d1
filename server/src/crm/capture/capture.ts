import {
  copyParamsOf,
  giveDocumentId,
  listenUntilClosed,
  type WriteEvent,
} from '../../database/written-rows';
import { inTurn, openingFresh } from '../../database/transactions';
import { setSilenced } from '../../webhooks/events-service';
import type { Entry } from '../mapping/mapping';
import { getWatchPlan } from '../mapping/registry';
import type { WatchedSource, WatchPlan } from '../mapping/watched-types';
import { publishChanges } from './publish-changes';
import {
  impactOf,
  isSubscribed,
  newRecord,
  trackDocuments,
  trackGiven,
  trackMatching,
  trackRelated,
} from './tracked-changes';
import { inWriteContext, trackedWrite, type WriteContext } from '../write-context';
import type { App } from '../../app';

/**
 * Makes `work` the unit of work of its context: in one transaction, its changes are tracked, then
 * compared, and their events are published. Within a unit of work it is a part of that one.
 */
const track = async <T>(context: WriteContext, work: () => Promise<T>): Promise<T> => {
  if (context.isTracking) return work();
  const tracked = async (): Promise<T> => {
    context.isTracking = true;
    try {
      return await work();
    } finally {
      // What publishing writes (the sender of a form) are writes of their own.
      context.isTracking = false;
    }
  };
  return context.app.db.unitOfWork(tracked, () => publishChanges(context));
};

/**
 * Makes several statements of the plugin's own one unit of work.
 * @param events that it may cause
 */
export const inUnitOfWork = <T>(
  app: App,
  events: readonly string[],
  work: (context: WriteContext) => Promise<T>
): Promise<T> =>
  inWriteContext(app, { compound: true, events }, (context) => track(context, () => work(context)));

const METHODS = ['create', 'createMany', 'update', 'updateMany', 'delete', 'deleteMany'] as const;
type Method = (typeof METHODS)[number];

type Write = (uid: string, params?: { data?: Record<string, unknown> }) => Promise<unknown>;

/** Writes to a type that is only the other end of a relation matter only where they edit it. */
const concerns = (
  plan: WatchPlan,
  method: Method,
  ...[uid, params]: Parameters<Write>
): boolean => {
  if (plan.byUid.has(uid)) return true;
  const relations = plan.relationsByTarget.get(uid);
  if (!relations) return false;
  if (method === 'delete' || method === 'deleteMany') return true;
  return relations.some(({ inverse }) => inverse !== null && params?.data?.[inverse] !== undefined);
};

/** Whether a write has to be tracked: somebody subscribed, or it may be a new entry of a form. */
const mayHaveEvents = async (
  plan: WatchPlan,
  context: WriteContext,
  uid: string
): Promise<boolean> => {
  if (plan.byUid.get(uid)?.some(({ form }) => form !== null)) return true;
  const events = plan.eventsByUid.get(uid) ?? [];
  const subscriptions = await context.subscriptions(events);
  return events.some((event) => subscriptions.isSubscribed(event));
};

const isOwn = (plan: WatchPlan, uid: string): boolean =>
  plan.byUid.get(uid)?.some(({ source }) => source.own) ?? false;

/**
 * Makes each write to a watched type a unit of work, in a transaction where it has none.
 *
 * The host runs `strapi.db.query(uid).create()` and its like without one: it inserts the row, then
 * calls the lifecycles. An event queued there could be kept while its write fails, or the other way
 * round. Only the document service brings a transaction along. So the entity manager's own methods
 * are wrapped, for watched types alone.
 * @returns a function after which they do nothing of that.
 */
const wrapWrites = (app: App, plan: WatchPlan): (() => void) => {
  const manager = app.strapi.db.entityManager as unknown as Record<Method, Write>;
  let isOn = true;
  for (const method of METHODS) {
    const original = manager[method];
    manager[method] = function write(this: unknown, uid, params) {
      const run = () => original.call(manager, uid, params);
      if (!isOn || trackedWrite() || !concerns(plan, method, uid, params)) return run();
      const events = plan.eventsByUid.get(uid) ?? [];
      return inTurn(app.strapi, () =>
        inWriteContext(app, { compound: false, events }, async (context) => {
          if (await mayHaveEvents(plan, context, uid)) return track(context, run);
          // Nobody subscribed: the write is the host's alone. One to the plugin's own types is still
          // more than one statement, because it keeps derived columns up to date.
          return isOwn(plan, uid) ? app.db.transaction(run) : run();
        })
      );
    };
  }
  // Others may have wrapped them since, so they stay.
  return () => {
    isOn = false;
  };
};

const ACTIONS: ReadonlySet<string> = new Set(
  'create update delete clone publish unpublish discardDraft'.split(' ')
);

interface DocumentContext {
  uid: string;
  action: string;
  params: { documentId?: string };
}

const isAnySubscribed = async (context: WriteContext, watched: WatchedSource): Promise<boolean> => {
  for (const action of ['update', 'create', 'delete'] as const) {
    if (await isSubscribed(context, watched, impactOf(watched, action, null))) return true;
  }
  return false;
};

/** Notes the document that a call names, before the call writes any of its rows. */
const trackNamedDocument = async (
  context: WriteContext,
  sources: readonly WatchedSource[],
  { action, params }: DocumentContext
): Promise<void> => {
  if (!params.documentId || action === 'clone') return;
  for (const watched of sources) {
    // What unpublishing hides is remembered, whether somebody subscribed by now or not.
    if (action === 'unpublish' || (await isAnySubscribed(context, watched))) {
      const impact = impactOf(watched, 'update', null);
      await trackDocuments(context, watched, [String(params.documentId)], impact);
    }
  }
};

/**
 * Makes one call of the document service one unit of work where it writes several rows: publishing
 * deletes the old published row and inserts a new one, a component's row is written before its
 * owner's, a clone copies relations last. Any other call has one write, which `wrapWrites` sees; its
 * context begins here, because here the host has not opened its transaction yet.
 * @returns a function that unwraps them.
 */
const wrapDocuments = (app: App, plan: WatchPlan): (() => void) => {
  const remove: unknown = app.strapi.documents.use(async (given, next) => {
    const call = given as unknown as DocumentContext;
    const sources = plan.byUid.get(call.uid) ?? [];
    const compound = plan.compound.has(call.uid) || (call.action === 'clone' && sources.length > 0);
    if (!ACTIONS.has(call.action) || (!compound && sources.length === 0)) return next();
    const events = plan.eventsByUid.get(call.uid) ?? [];
    return inTurn(app.strapi, () =>
      inWriteContext(app, { compound, events }, (context) => {
        if (!compound) return openingFresh(async () => next());
        return track(context, async () => {
          await trackNamedDocument(context, sources, call);
          return next();
        });
      })
    );
  });
  return () => void (remove as () => void)();
};

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
      changes.set(giveDocumentId(context.app.strapi, watched.uid, data), newRecord(tags));
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
const watchWrites = (app: App, plan: WatchPlan): (() => void) => {
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
  return app.strapi.db.lifecycles.subscribe(
    subscriber as unknown as Parameters<typeof app.strapi.db.lifecycles.subscribe>[0]
  );
};

/** Whether writes become events on this node. */
export class SourcesService {
  private stops: (() => void)[] = [];

  constructor(private readonly app: App) {}

  start(): void {
    if (this.stops.length > 0) return;
    listenUntilClosed(this.app.strapi);
    setSilenced(this.app, false);
    const plan = getWatchPlan(this.app);
    copyParamsOf(this.app.strapi, plan.uids);
    this.stops = [
      wrapDocuments(this.app, plan),
      wrapWrites(this.app, plan),
      watchWrites(this.app, plan),
    ];
  }

  /** Writes on this node send no events until `start()`: for a migration that should stay silent. */
  stop(): void {
    setSilenced(this.app, true);
    for (const stop of this.stops.splice(0).reverse()) stop();
  }
}

export const sourcesOf = (app: App): SourcesService =>
  app.strapi.service('plugin::switchboard.sources') as unknown as SourcesService;
