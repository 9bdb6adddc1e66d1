/**
 * Hooks with the host's interface (`register`, `delete`, `getHandlers`, `call`) in which a handler
 * that throws or hangs is logged by name and left out: it harms no other handler, no write and no
 * delivery.
 */
import { errorText } from '../runtime/text';

/** A handler of any of the plugin's hooks; each hook's own types are in `types.ts`. */
export type HookHandler<In = never, Out = unknown> = (value: In) => Out | Promise<Out>;

export interface IsolatedHook<In, Out> {
  getHandlers(): HookHandler<In, Out>[];
  register(handler: HookHandler<In, Out>): IsolatedHook<In, Out>;
  delete(handler: HookHandler<In, Out>): IsolatedHook<In, Out>;
  call(value: In): Promise<Out>;
}

export interface HookLog {
  error(message: string): void;
}

export const HANDLER_DEADLINE_MS = 5_000;

/** How long a handler is not asked that hung, in milliseconds: twice as long each time that it hangs again. */
export interface Rest {
  firstMs: number;
  longestMs: number;
}

/** Of hooks that are asked inside a write, for which others wait. */
export const REST_INSIDE_WRITES: Rest = { firstMs: 60_000, longestMs: 3_600_000 };

class LateError extends Error {}

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof (value as { then?: unknown } | null)?.then === 'function';

const withDeadline = async <T>(pending: PromiseLike<T>, milliseconds: number): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new LateError(`no answer within ${milliseconds} ms`)),
      milliseconds
    );
  });
  try {
    return await Promise.race([pending, late]);
  } finally {
    clearTimeout(timer);
  }
};

type Guarded<Out> = { ok: true; value: Out } | { ok: false };

type Guard<In, Out> = (
  handler: HookHandler<In, Out>,
  value: In,
  /** What to make of what it returned; what it throws is logged by the handler's name. */
  accept?: (returned: Out) => Out
) => Promise<Guarded<Out>>;

/** The host's interface around a list of handlers; the kinds of hook differ in `call` alone. */
export const createHook = <In, Out>(
  name: string,
  log: HookLog,
  deadlineMs: number,
  call: (
    handlers: readonly HookHandler<In, Out>[],
    guarded: Guard<In, Out>,
    value: In
  ) => Promise<Out>,
  rest?: Rest
): IsolatedHook<In, Out> & { guarded: Guard<In, Out> } => {
  const handlers: HookHandler<In, Out>[] = [];
  /** Handlers that hung the last time they were asked; times of the process's clock. */
  const resting = new Map<HookHandler<In, Out>, { until: number; forMs: number }>();
  const isResting = (handler: HookHandler<In, Out>): boolean =>
    (resting.get(handler)?.until ?? 0) > performance.now();

  /** @returns for how long it is left out; null where it is not, or somebody else found it out. */
  const leaveOut = (handler: HookHandler<In, Out>, { firstMs, longestMs }: Rest): number | null => {
    if (isResting(handler)) return null;
    const forMs = Math.min((resting.get(handler)?.forMs ?? firstMs / 2) * 2, longestMs);
    resting.set(handler, { until: performance.now() + forMs, forMs });
    return forMs;
  };

  const guarded: Guard<In, Out> = async (handler, value, accept) => {
    if (rest && isResting(handler)) return { ok: false };
    try {
      const returned = handler(value);
      const settled = isThenable(returned) ? await withDeadline(returned, deadlineMs) : returned;
      resting.delete(handler);
      return { ok: true, value: accept ? accept(settled as Out) : (settled as Out) };
    } catch (error) {
      const forMs = rest && error instanceof LateError ? leaveOut(handler, rest) : 0;
      if (forMs === null) return { ok: false };
      const left = forMs > 0 ? `; it is left out for ${Math.ceil(forMs / 1000)} seconds` : '';
      log.error(
        `switchboard: a handler of ${name} (${handler.name || 'anonymous'}) failed: ${errorText(error)}${left}`
      );
      return { ok: false };
    }
  };
  const hook = {
    guarded,
    getHandlers: () => handlers,
    register(handler: HookHandler<In, Out>) {
      handlers.push(handler);
      return hook;
    },
    delete(handler: HookHandler<In, Out>) {
      const at = handlers.indexOf(handler);
      if (at >= 0) handlers.splice(at, 1);
      resting.delete(handler);
      return hook;
    },
    // A copy: a handler may take itself off the list while it runs.
    call: (value: In) => call([...handlers], guarded, value),
  };
  return hook;
};

/** What one filter asks of its handlers beyond not throwing. */
export interface FilterRules<T> {
  /** What a handler is handed: a copy, where one that is left out must leave no trace. */
  prepare(current: T): T;
  /**
   * What goes on of what a handler returned.
   * @throws Error that says what is wrong with it; the handler is then left out
   */
  accept(returned: unknown, handed: T): T;
}

const ANYTHING: FilterRules<unknown> = {
  prepare: (current) => current,
  accept: (returned, handed) => (returned === undefined ? handed : returned),
};

/**
 * Handlers run one after the other, each with what the one before returned; null ends it. Without
 * rules, a handler that returns nothing has changed nothing (or changed the value in place).
 * @param rest has a handler that hung left out for a while
 */
export const createFilter = <T>(
  name: string,
  log: HookLog,
  deadlineMs = HANDLER_DEADLINE_MS,
  rules: FilterRules<T> = ANYTHING as FilterRules<T>,
  rest?: Rest
): IsolatedHook<T, T> => {
  const ask = async (
    handlers: readonly HookHandler<T, T>[],
    guarded: Guard<T, T>,
    value: T
  ): Promise<T> => {
    let current = value;
    for (const handler of handlers) {
      const handed = rules.prepare(current);
      const result = await guarded(handler, handed, (returned) => rules.accept(returned, handed));
      if (result.ok) current = result.value;
      if (current === null) break;
    }
    return current;
  };
  return createHook<T, T>(name, log, deadlineMs, ask, rest);
};

/** Handlers run one after the other with the same value; what they return is not looked at. */
export const createAction = <T>(
  name: string,
  log: HookLog,
  deadlineMs = HANDLER_DEADLINE_MS
): IsolatedHook<T, void> =>
  createHook<T, void>(name, log, deadlineMs, async (handlers, guarded, value) => {
    for (const handler of handlers) await guarded(handler, value);
  });
