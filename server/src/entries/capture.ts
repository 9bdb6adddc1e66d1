import type { Core } from '@strapi/strapi';
import { listenUntilClosed } from '../database/listen-until-closed';
import { inTurn } from '../database/transactions';
import { copyParamsOf } from '../database/host-writes';
import { inTrackedUnit } from '../database/unit-of-work';
import type { WriteEvent } from '../database/written-rows';
import { isSilenced } from '../webhooks/events-service';
import { type EntryType, type EntryTypes, getEntryTypes } from './types';
import { publishChanges } from './capture/publish';
import { trackCreated, trackDocuments, trackMatching } from './capture/track';
import { type EntryWrite, inWrite, trackedWrite } from './write';
import { seesDrafts } from './capture/versions';

/**
 * Makes `work` a unit of work where somebody subscribed to an event of the type: in one transaction,
 * its changes are tracked, then compared, and their events are published. Within a unit of work it is
 * a part of that one; where nobody subscribed it is the host's alone.
 * @param begin notes what is known to change, before the work writes any of its rows
 */
const capture = async <T>(
  strapi: Core.Strapi,
  type: EntryType,
  begin: (write: EntryWrite) => Promise<void>,
  work: () => Promise<T>
): Promise<T> => {
  const outer = trackedWrite();
  if (outer) {
    if (await outer.isSubscribed(type)) await begin(outer);
    return work();
  }
  return inTurn(strapi, () =>
    inWrite(strapi, type, async (write) => {
      if (isSilenced(strapi) || !(await write.isSubscribed(type))) return work();
      const tracked = async (): Promise<T> => {
        write.isTracking = true;
        try {
          await begin(write);
          return await work();
        } finally {
          write.isTracking = false;
        }
      };
      return inTrackedUnit(strapi, tracked, () => publishChanges(write));
    })
  );
};

interface DocumentCall {
  uid: string;
  action: string;
  params: { documentId?: unknown; status?: unknown };
}

const OF_PUBLISHED: ReadonlySet<string> = new Set(['publish', 'unpublish', 'delete']);
const OF_ANY: ReadonlySet<string> = new Set(
  'create update delete clone publish unpublish discardDraft'.split(' ')
);

/** Whether a call may change what receivers hear of: of many types that is no draft. */
const concerns = (type: EntryType, { action, params }: DocumentCall): boolean => {
  if (seesDrafts(type)) return OF_ANY.has(action);
  const publishes = params.status === 'published' && (action === 'create' || action === 'update');
  return publishes || OF_PUBLISHED.has(action);
};

/**
 * Makes each call of the document service for a named type one unit of work. Publishing deletes a row
 * and inserts another, a component's row is written before its owner's, and shared fields are copied
 * to other languages after it: only around all of that can before be compared with after. To be called
 * in `register`, so that it is around what other plugins add in their `bootstrap`.
 */
export const wrapDocuments = (strapi: Core.Strapi, types: () => EntryTypes): void => {
  strapi.documents.use(async (given, next) => {
    const call = given as unknown as DocumentCall;
    const type = types().get(call.uid);
    if (!type || !concerns(type, call)) return next();
    const { documentId } = call.params;
    const named = typeof documentId === 'string' && call.action !== 'clone' ? [documentId] : [];
    return capture(
      strapi,
      type,
      (write) => trackDocuments(write, type, named),
      async () => next()
    );
  });
};

const METHODS = ['create', 'createMany', 'update', 'updateMany', 'delete', 'deleteMany'] as const;
type Method = (typeof METHODS)[number];
type Write = (uid: string, params?: unknown) => Promise<unknown>;

/**
 * Gives each write of the query engine to a named type a transaction where it has none: the host runs
 * them without, and an event could outlive its write, or the other way round.
 */
const wrapWrites = (strapi: Core.Strapi, types: EntryTypes): void => {
  const manager = strapi.db.entityManager as unknown as Record<Method, Write>;
  for (const method of METHODS) {
    const original = manager[method];
    manager[method] = function write(this: unknown, uid, params) {
      const run = () => original.call(manager, uid, params);
      const type = types.get(uid);
      if (!type || trackedWrite()) return run();
      return capture(strapi, type, async () => undefined, run);
    };
  }
};

interface CreateEvent {
  model: { uid: string };
  params: { data?: Record<string, unknown> | Record<string, unknown>[] };
}

/** Hears of every write to a named type, from wherever it comes, and notes what is about to change. */
const watchWrites = (strapi: Core.Strapi, types: EntryTypes): void => {
  const tracking = async (
    uid: string,
    track: (write: EntryWrite, type: EntryType) => Promise<void>
  ): Promise<void> => {
    const write = trackedWrite();
    const type = types.get(uid);
    if (write && type && (await write.isSubscribed(type))) await track(write, type);
  };
  const beforeCreate = ({ model, params }: CreateEvent): Promise<void> => {
    const { data = [] } = params;
    const rows = Array.isArray(data) ? data : [data];
    return tracking(model.uid, (write, type) => trackCreated(write, type, rows));
  };
  const beforeChange = (event: WriteEvent): Promise<void> =>
    tracking(event.model.uid, (write, type) => trackMatching(write, type, event));
  const subscriber = {
    models: [...types.keys()],
    beforeCreate,
    beforeCreateMany: beforeCreate,
    beforeUpdate: beforeChange,
    beforeUpdateMany: beforeChange,
    beforeDelete: beforeChange,
    beforeDeleteMany: beforeChange,
  };
  strapi.db.lifecycles.subscribe(
    subscriber as unknown as Parameters<typeof strapi.db.lifecycles.subscribe>[0]
  );
};

/** Begins to listen to writes of the query engine; once every plugin has registered. */
export const captureWrites = (strapi: Core.Strapi): void => {
  const types = getEntryTypes(strapi);
  if (types.size === 0) return;
  listenUntilClosed(strapi);
  copyParamsOf(strapi, [...types.keys()]);
  wrapWrites(strapi, types);
  watchWrites(strapi, types);
};
