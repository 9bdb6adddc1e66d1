import {
  aroundWrites,
  copyParamsOf,
  type HostWrite,
  listenToWrites,
  listenUntilClosed,
  type WriteEvent,
} from '../../database/written-rows';
import { inTurn, openingFresh } from '../../database/transactions';
import { prefetching, silenced, UnitsOfWork } from '../../webhooks/unit-of-work';
import { getWatchPlan, type WatchedSource, type WatchPlan } from '../mapping/sources';
import { CrmWrite, impactOf } from './crm-write';
import type { App } from '../../app';

const writes = new UnitsOfWork<CrmWrite>();

/**
 * Makes several statements of the plugin's own one unit of work: part of the one that is being tracked,
 * or one of its own.
 * @param events that it may cause
 */
export const inUnitOfWork = <T>(
  app: App,
  events: readonly string[],
  work: (write: CrmWrite) => Promise<T>
): Promise<T> => {
  const outer = writes.tracked;
  if (outer) return work(outer);
  return writes.enter(new CrmWrite(app, true), events, (write) => write.run(() => work(write)));
};

/** Writes to a type that is only the other end of a relation matter only where they edit it. */
const concerns = (plan: WatchPlan, { method, uid, params }: HostWrite): boolean => {
  if (plan.byUid.has(uid)) return true;
  const relations = plan.relationsByTarget.get(uid);
  if (!relations) return false;
  if (method === 'delete' || method === 'deleteMany') return true;
  const data = params?.data as Data | undefined;
  return relations.some(({ inverse }) => inverse !== null && data?.[inverse] !== undefined);
};

/**
 * Makes each write to a watched type a unit of work, in a transaction where it has none.
 *
 * The host runs `strapi.db.query(uid).create()` and its like without one: it inserts the row, then
 * calls the lifecycles. An event queued there could be kept while its write fails, or the other way
 * round. Only the document service brings a transaction along. So the entity manager's own methods
 * are wrapped, for watched types alone.
 */
const wrapWrites = (app: App, plan: WatchPlan): void =>
  aroundWrites(app.strapi, (hostWrite, run) => {
    const { uid } = hostWrite;
    if (silenced.has(app) || writes.tracked || !concerns(plan, hostWrite)) return run();
    const events = plan.eventsByUid.get(uid) ?? [];
    const sources = plan.byUid.get(uid) ?? [];
    return inTurn(app.strapi, () =>
      writes.enter(new CrmWrite(app, false), events, async (write) => {
        // It may be a new entry of a form, or somebody subscribed.
        const isForm = sources.some(({ form }) => form !== null);
        if (isForm || (await write.isAnySubscribed(events))) return write.run(() => run());
        // Nobody subscribed: the write is the host's alone. One to the plugin's own types is still
        // more than one statement, because it keeps derived columns up to date.
        const isOwn = sources.some(({ source }) => source.own);
        return isOwn ? app.db.transaction(() => run()) : run();
      })
    );
  });

const ACTIONS: ReadonlySet<string> = new Set(
  'create update delete clone publish unpublish discardDraft'.split(' ')
);

interface DocumentCall {
  uid: string;
  action: string;
  params: { documentId?: string };
}

/** Notes the document that a call names, before the call writes any of its rows. */
const trackNamedDocument = async (
  write: CrmWrite,
  sources: readonly WatchedSource[],
  { action, params: { documentId } }: DocumentCall
): Promise<void> => {
  if (!documentId || action === 'clone') return;
  for (const watched of sources) {
    let isHeard = false;
    for (const what of ['update', 'create', 'delete'] as const) {
      isHeard ||= await write.isHeard(watched, impactOf(watched, what, null));
    }
    // What unpublishing hides is remembered, whether somebody subscribed by now or not.
    if (!isHeard && action !== 'unpublish') continue;
    const impact = impactOf(watched, 'update', null);
    await write.trackDocuments(watched, [String(documentId)], impact);
  }
};

/**
 * Makes one call of the document service one unit of work where it writes several rows: publishing
 * deletes the old published row and inserts a new one, a component's row is written before its
 * owner's, a clone copies relations last. Any other call has one write, which `wrapWrites` sees; its
 * context begins here, because here the host has not opened its transaction yet.
 */
const wrapDocuments = (app: App, plan: WatchPlan): void =>
  void app.strapi.documents.use(async (given, next) => {
    const call = given as unknown as DocumentCall;
    const sources = plan.byUid.get(call.uid) ?? [];
    const compound = plan.compound.has(call.uid) || (call.action === 'clone' && sources.length > 0);
    if (silenced.has(app) || !ACTIONS.has(call.action)) return next();
    if (!compound && sources.length === 0) return next();
    const events = plan.eventsByUid.get(call.uid) ?? [];
    return inTurn(app.strapi, () => {
      if (!compound) return prefetching(app, events, () => openingFresh(async () => next()));
      return inUnitOfWork(app, events, async (write) => {
        await trackNamedDocument(write, sources, call);
        return next();
      });
    });
  });

type Data = Record<string, unknown>;

interface LifecycleEvent extends WriteEvent {
  params: WriteEvent['params'] & { data?: Data | Data[]; select?: unknown };
  result?: unknown;
}

/**
 * Hears of every write to a watched type, single and bulk, from wherever it comes. It only tracks
 * what is about to change; comparing and publishing come at the end of the unit of work.
 */
const watchWrites = (app: App, plan: WatchPlan): void => {
  const beforeCreate = async (event: LifecycleEvent): Promise<void> => {
    const write = writes.tracked;
    if (!write) return;
    const { data = [] } = event.params;
    const rows = Array.isArray(data) ? data : [data];
    for (const watched of plan.byUid.get(event.model.uid) ?? []) {
      await write.trackCreated(watched, rows);
    }
    for (const row of rows) await write.trackRelated(plan, 'create', event, row);
  };

  const beforeChange =
    (action: 'update' | 'delete') =>
    async (event: LifecycleEvent): Promise<void> => {
      const write = writes.tracked;
      if (!write) return;
      for (const watched of plan.byUid.get(event.model.uid) ?? []) {
        await write.trackMatching(watched, action, event);
      }
      await write.trackRelated(plan, action, event, (event.params.data ?? {}) as Data);
    };

  listenToWrites(app.strapi, {
    models: [...plan.uids],
    beforeCreate,
    beforeCreateMany: beforeCreate,
    afterCreate({ model, params, result }: LifecycleEvent) {
      for (const watched of plan.byUid.get(model.uid) ?? []) {
        writes.tracked?.keepRow(watched, params as { data?: Data }, result);
      }
    },
    beforeUpdate: beforeChange('update'),
    beforeUpdateMany: beforeChange('update'),
    beforeDelete: beforeChange('delete'),
    beforeDeleteMany: beforeChange('delete'),
  });
};

/** Whether writes become events on this node. */
export class SourcesService {
  private isListening = false;

  constructor(private readonly app: App) {}

  start(): void {
    silenced.delete(this.app);
    if (this.isListening) return;
    this.isListening = true;
    listenUntilClosed(this.app.strapi);
    const plan = getWatchPlan(this.app);
    copyParamsOf(this.app.strapi, plan.uids);
    wrapDocuments(this.app, plan);
    wrapWrites(this.app, plan);
    watchWrites(this.app, plan);
  }

  /** Writes on this node send no events until `start()`: for a migration that should stay silent. */
  stop(): void {
    silenced.add(this.app);
  }
}

export const sourcesOf = (app: App): SourcesService =>
  app.strapi.service('plugin::switchboard.sources') as unknown as SourcesService;
