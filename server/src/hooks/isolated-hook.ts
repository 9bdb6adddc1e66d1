/**
 * Hooks with the host's interface (`register`, `delete`, `getHandlers`, `call`) in which a handler
 * that throws or hangs is logged by name and left out: it harms no other handler, no write and no
 * delivery.
 */

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

const HANDLER_DEADLINE_MS = 5_000;

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

/** The host's interface around a list of handlers; the two kinds of hook differ in `call` alone. */
const createHook = <In, Out>(
  name: string,
  log: HookLog,
  deadlineMs: number,
  call: (
    handlers: readonly HookHandler<In, Out>[],
    guarded: (handler: HookHandler<In, Out>, value: In) => Promise<Guarded<Out>>,
    value: In
  ) => Promise<Out>
): IsolatedHook<In, Out> => {
  const handlers: HookHandler<In, Out>[] = [];
  const guarded = async (handler: HookHandler<In, Out>, value: In): Promise<Guarded<Out>> => {
    try {
      const returned = handler(value);
      const settled = isThenable(returned) ? await withDeadline(returned, deadlineMs) : returned;
      return { ok: true, value: settled as Out };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      log.error(`A handler of ${name} (${handler.name || 'anonymous'}) failed: ${reason}`);
      return { ok: false };
    }
  };
  const hook: IsolatedHook<In, Out> = {
    getHandlers: () => handlers,
    register(handler) {
      handlers.push(handler);
      return hook;
    },
    delete(handler) {
      const at = handlers.indexOf(handler);
      if (at >= 0) handlers.splice(at, 1);
      return hook;
    },
    // A copy: a handler may take itself off the list while it runs.
    call: (value) => call([...handlers], guarded, value),
  };
  return hook;
};

/**
 * Handlers run one after the other, each with what the one before returned. A handler that returns
 * nothing has changed nothing (or changed the value in place).
 */
export const createFilter = <T>(
  name: string,
  log: HookLog,
  deadlineMs = HANDLER_DEADLINE_MS
): IsolatedHook<T, T> =>
  createHook<T, T>(name, log, deadlineMs, async (handlers, guarded, value) => {
    let current = value;
    for (const handler of handlers) {
      const result = await guarded(handler, current);
      if (result.ok && result.value !== undefined) current = result.value;
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
