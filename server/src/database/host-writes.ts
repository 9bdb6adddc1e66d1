import type { Core } from '@strapi/strapi';

const METHODS = ['create', 'createMany', 'update', 'updateMany', 'delete', 'deleteMany'] as const;

type Method = (typeof METHODS)[number];
type Params = Record<string, unknown>;
type Write = (uid: string, params?: Params) => Promise<unknown>;

const types = new WeakMap<object, Set<string>>();

const copyOf = (data: unknown): unknown => {
  if (Array.isArray(data)) return data.map(copyOf);
  return typeof data === 'object' && data !== null ? { ...data } : data;
};

/**
 * Has each write to these types work on a copy of what its caller gave: ids and dates that lifecycles
 * add would else be in the caller's own object, and in the next row that is made of it.
 */
export const copyParamsOf = (strapi: Core.Strapi, uids: readonly string[]): void => {
  const known = types.get(strapi.db);
  if (known) {
    for (const uid of uids) known.add(uid);
    return;
  }
  const copied = new Set(uids);
  types.set(strapi.db, copied);
  const manager = strapi.db.entityManager as unknown as Record<Method, Write>;
  for (const method of METHODS) {
    const original = manager[method];
    manager[method] = function write(this: unknown, uid, params) {
      if (!copied.has(uid) || !params) return original.call(manager, uid, params);
      const own = 'data' in params ? { ...params, data: copyOf(params.data) } : { ...params };
      return original.call(manager, uid, own);
    };
  }
};

const done = new WeakSet<Core.Strapi>();

/**
 * The host forgets who listens to writes and closes the database afterwards; a write in between
 * would be committed without its events. Here the database closes first. May be called again.
 */
export const listenUntilClosed = (strapi: Core.Strapi): void => {
  if (done.has(strapi)) return;
  done.add(strapi);
  const { db } = strapi;
  db.destroy = async () => {
    await db.connection.destroy();
    db.lifecycles.clear();
  };
};
