import type { Core } from '@strapi/strapi';
import { inTransaction } from '../../database/connection';
import { getPublisher } from '../../webhooks/publisher';
import { askAhead } from '../../webhooks/subscriptions';
import { SOURCE_EVENTS } from '../rules';
import { publishScope } from './publish-scope';
import { currentScope, inScope, type Scope } from './scope';
import { isWanted, touchDocuments, touchingOf } from './touch';
import type { WatchedSource, WatchPlan } from './watched';

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
  const opposites = plan.opposites.get(uid);
  if (!opposites) return false;
  if (method === 'delete' || method === 'deleteMany') return true;
  return opposites.some(({ inverse }) => inverse !== null && params?.data?.[inverse] !== undefined);
};

/** Where nobody asked for any event of the CRM, a write is the host's alone. A form is our own. */
const matters = async (strapi: Core.Strapi, plan: WatchPlan, uid: string): Promise<boolean> =>
  plan.byUid.get(uid)?.some(({ form }) => form !== null) ||
  (await getPublisher(strapi).wanted(SOURCE_EVENTS)).size > 0;

/** A write to the plugin's own types is more than one statement: it keeps dates up to date. */
const isOwn = (plan: WatchPlan, uid: string): boolean =>
  plan.byUid.get(uid)?.some(({ source }) => source.own) ?? false;

/**
 * Gives each write to a watched type a scope and, where it has none, a transaction.
 *
 * The host runs `strapi.db.query(uid).create()` and its like without one: it inserts the row, then
 * calls the lifecycles. An event queued there could be kept while its write fails, or the other way
 * round. Only the document service brings a transaction along. So the entity manager's own methods
 * are wrapped, for watched types alone.
 * @returns a function that unwraps them.
 */
export const wrapWrites = (strapi: Core.Strapi, plan: WatchPlan): (() => void) => {
  const manager = strapi.db.entityManager as unknown as Record<Method, Write>;
  const originals = new Map<Method, Write>();
  for (const method of METHODS) {
    const original = manager[method];
    originals.set(method, original);
    manager[method] = function write(this: unknown, uid, params) {
      const run = () => original.call(manager, uid, params);
      if (currentScope() || !concerns(plan, method, uid, params)) return run();
      return askAhead(strapi, async () => {
        if (!(await matters(strapi, plan, uid)))
          return isOwn(plan, uid) ? inTransaction(strapi, run) : run();
        return inScope(strapi, { compound: false }, (scope) => publishScope(strapi, scope), run);
      });
    };
  }
  return () => {
    for (const [method, original] of originals) manager[method] = original;
  };
};

const ACTIONS: ReadonlySet<string> = new Set(
  'create update delete clone publish unpublish discardDraft'.split(' ')
);

const isAnyWanted = async (scope: Scope, watched: WatchedSource): Promise<boolean> => {
  for (const action of ['update', 'create', 'delete'] as const) {
    if (await isWanted(scope, watched, touchingOf(watched, action, null))) return true;
  }
  return false;
};

interface DocumentContext {
  uid: string;
  action: string;
  params: { documentId?: string };
}

/**
 * Makes one call of the document service one scope: publishing deletes the old published row and
 * inserts a new one, a component's row is written before its owner's, a clone copies relations last.
 * @returns a function that unwraps them.
 */
export const wrapDocuments = (strapi: Core.Strapi, plan: WatchPlan): (() => void) => {
  const remove: unknown = strapi.documents.use(async (context, next) => {
    const { uid, action, params } = context as unknown as DocumentContext;
    const sources = plan.byUid.get(uid) ?? [];
    const isCompound = plan.compound.has(uid) || (action === 'clone' && sources.length > 0);
    if (!ACTIONS.has(action)) return next();
    if (!isCompound) return sources.length > 0 ? askAhead(strapi, next) : next();
    const run = () =>
      inScope(
        strapi,
        { compound: true },
        (scope) => publishScope(strapi, scope),
        async (scope) => {
          for (const watched of params.documentId && action !== 'clone' ? sources : []) {
            // What unpublishing hides is remembered, whether somebody listens by now or not.
            if (action === 'unpublish' || (await isAnyWanted(scope, watched))) {
              const touching = touchingOf(watched, 'update', null);
              await touchDocuments(strapi, scope, watched, [String(params.documentId)], touching);
            }
          }
          return next();
        }
      );
    return askAhead(strapi, run) as ReturnType<typeof next>;
  });
  return () => void (remove as () => void)();
};
