/**
 * Hooks with the host's interface (`register`, `delete`, `getHandlers`, `call`) in which a handler
 * that throws or hangs is logged by name and left out: it harms no other handler, no write and no
 * delivery.
 */
import { errorText } from '../runtime/error-text';

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

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof (value as { then?: unknown } | null)?.then === 'function';

const withDeadline = async <T>(pending: PromiseLike<T>, milliseconds: number): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new Error(`no answer within ${milliseconds} ms`)),
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
  ) => Promise<Out>
): IsolatedHook<In, Out> & { guarded: Guard<In, Out> } => {
  const handlers: HookHandler<In, Out>[] = [];
  const guarded: Guard<In, Out> = async (handler, value, accept) => {
    try {
      const returned = handler(value);
      const settled = isThenable(returned) ? await withDeadline(returned, deadlineMs) : returned;
      return { ok: true, value: accept ? accept(settled as Out) : (settled as Out) };
    } catch (error) {
      log.error(
        `switchboard: a handler of ${name} (${handler.name || 'anonymous'}) failed: ${errorText(error)}`
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
 */
export const createFilter = <T>(
  name: string,
  log: HookLog,
  deadlineMs = HANDLER_DEADLINE_MS,
  rules: FilterRules<T> = ANYTHING as FilterRules<T>
): IsolatedHook<T, T> =>
  createHook<T, T>(name, log, deadlineMs, async (handlers, guarded, value) => {
    let current = value;
    for (const handler of handlers) {
      const handed = rules.prepare(current);
      const result = await guarded(handler, handed, (returned) => rules.accept(returned, handed));
      if (result.ok) current = result.value;
      if (current === null) break;
    }
    return current;
  });

/** Handlers run one after the other with the same value; what they return is not looked at. */
export const createAction = <T>(
  name: string,
  log: HookLog,
  deadlineMs = HANDLER_DEADLINE_MS
): IsolatedHook<T, void> =>
  createHook<T, void>(name, log, deadlineMs, async (handlers, guarded, value) => {
    for (const handler of handlers) await guarded(handler, value);
  });
