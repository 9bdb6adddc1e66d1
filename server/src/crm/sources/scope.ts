import { AsyncLocalStorage } from 'node:async_hooks';
import type { Core } from '@strapi/strapi';
import type { ChangeSource } from '../../../../shared/contracts/crm';
import { getPublisher } from '../../webhooks/publisher';
import { type Before, SOURCE_EVENTS } from '../rules';
import { currentOrigin } from './origin';
import type { Entry } from './mapping';
import type { WatchedSource } from './watched';

/** One record within a scope, as it was before the first write to it. */
export interface Touch {
  /** null: there was none. */
  before: Before | null;
  tags: boolean;
  /** The row as the write left it, where it need not be read again. */
  row: Entry | null;
  /** Its state before could not be told (a computed field failed): no event is made up. */
  unknown: boolean;
}

/**
 * One business change: a call of the document service, or a write to the database outside of one.
 * However many rows it writes (a draft, a published row, a locale, a nested write of a lifecycle),
 * each record is compared once, before against after, and speaks once.
 */
export class Scope {
  closed = false;
  readonly touched = new Map<WatchedSource, Map<string, Touch>>();
  readonly origin: ChangeSource;
  private readonly strapi: Core.Strapi;
  private asked: Promise<ReadonlySet<string>> | null = null;

  constructor(
    strapi: Core.Strapi,
    /** Rows may still change after their own write: a document service call does several. */
    readonly compound: boolean
  ) {
    this.strapi = strapi;
    this.origin = currentOrigin(strapi);
  }

  /** Events of the CRM that somebody asked for. */
  wanted(): Promise<ReadonlySet<string>> {
    this.asked ??= getPublisher(this.strapi).wanted(SOURCE_EVENTS);
    return this.asked;
  }

  touches(watched: WatchedSource): Map<string, Touch> {
    let touches = this.touched.get(watched);
    if (!touches) {
      touches = new Map();
      this.touched.set(watched, touches);
    }
    return touches;
  }
}

const storage = new AsyncLocalStorage<Scope>();

export const currentScope = (): Scope | undefined => {
  const scope = storage.getStore();
  return scope?.closed ? undefined : scope;
};

/**
 * Runs `work` within the current scope, or in a new one whose events are published in the same
 * transaction, just before it ends.
 */
export const inScope = async <T>(
  strapi: Core.Strapi,
  options: { compound: boolean; fresh?: boolean },
  publish: (scope: Scope) => Promise<void>,
  work: (scope: Scope) => Promise<T>
): Promise<T> => {
  const current = options.fresh ? undefined : currentScope();
  if (current) return work(current);
  return (await strapi.db.transaction(async () => {
    const scope = new Scope(strapi, options.compound);
    return storage.run(scope, async () => {
      try {
        const result = await work(scope);
        scope.closed = true;
        await publish(scope);
        return result;
      } finally {
        scope.closed = true;
      }
    });
  })) as T;
};
