import type { Core } from '@strapi/strapi';
import { nextTurn } from '../runtime/event-loop';
import { errorText } from '../runtime/text';
import { daysRules, eventsRules, payloadRules, requestRules } from './filter-rules';
import type { EventToSend, HookTypes } from './types';

export type * from './types';

/** A handler of any of the plugin's hooks; each hook's own types are in `types.ts`. */
type HookHandler<In = never, Out = unknown> = (value: In) => Out | Promise<Out>;

interface IsolatedHook<In, Out> {
  getHandlers(): HookHandler<In, Out>[];
  register(handler: HookHandler<In, Out>): IsolatedHook<In, Out>;
  delete(handler: HookHandler<In, Out>): IsolatedHook<In, Out>;
  call(value: In): Promise<Out>;
}

interface HookLog {
  error(message: string): void;
}

const HANDLER_DEADLINE_MS = 5_000;

/** How long a handler is not asked that hung, in milliseconds: twice as long each time that it hangs again. */
interface Rest {
  firstMs: number;
  longestMs: number;
}

/** For hooks that are called inside a write, for which others wait. */
const REST_INSIDE_WRITES: Rest = { firstMs: 60_000, longestMs: 3_600_000 };

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
  /** Turns a handler's result into the hook's; errors that it throws are logged by the handler's name. */
  accept?: (returned: Out) => Out
) => Promise<Guarded<Out>>;

interface HookOptions {
  /** How long a handler may take; 5 seconds by default. */
  deadlineMs?: number;
  /** Leaves out a handler that hung for a while. */
  rest?: Rest;
}

/**
 * A hook with the host's interface in which a handler that throws or hangs is logged by name and left
 * out: it harms no other handler, no write and no delivery. The kinds of hook differ in `call` alone.
 */
const createHook = <In, Out>(
  name: string,
  log: HookLog,
  call: (
    handlers: readonly HookHandler<In, Out>[],
    guarded: Guard<In, Out>,
    value: In
  ) => Promise<Out>,
  { deadlineMs = HANDLER_DEADLINE_MS, rest }: HookOptions = {}
): IsolatedHook<In, Out> & { guarded: Guard<In, Out> } => {
  const handlers: HookHandler<In, Out>[] = [];
  /** Handlers that hung the last time they were asked; times of the process's clock. */
  const resting = new Map<HookHandler<In, Out>, { until: number; forMs: number }>();
  const isResting = (handler: HookHandler<In, Out>): boolean =>
    (resting.get(handler)?.until ?? 0) > performance.now();

  /** @returns for how long it is left out; null if it is not, or somebody else found it out. */
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

/** The rules of a filter for its handlers besides not throwing. */
export interface FilterRules<T> {
  /** The value for a handler: a copy, if a handler that is left out must leave no trace. */
  prepare(current: T): T;
  /**
   * The value that goes on after a handler has returned.
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
  rules: FilterRules<T> = ANYTHING as FilterRules<T>,
  options: HookOptions = {}
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
  return createHook<T, T>(name, log, ask, options);
};

/** Handlers run one after the other with the same value; what they return is not looked at. */
export const createAction = <T>(
  name: string,
  log: HookLog,
  options: HookOptions = {}
): IsolatedHook<T, void> =>
  createHook<T, void>(
    name,
    log,
    async (handlers, guarded, value) => {
      for (const handler of handlers) await guarded(handler, value);
    },
    options
  );

/** An event as it was sent, its data as JSON. */
export interface SentEvent {
  event: string;
  text: string;
}

/** `service_crm_webhook`: call it to send an event; its handlers get every event there is. */
interface EventHook extends IsolatedHook<EventToSend, void> {
  call(value: EventToSend): Promise<void>;
  call(event: string, data?: object): Promise<void>;
}

/** So many events are told in one turn of the event loop. */
const A_TURN = 50;

/** A hook as it is made here, with what only the plugin may do. */
type OwnHook = ReturnType<typeof createHook<EventToSend, void>>;

/** The plugin's hooks, typed. */
export class Hooks {
  private event: OwnHook | undefined;

  constructor(private readonly strapi: Core.Strapi) {}

  /** One of them. */
  get<N extends keyof HookTypes>(
    name: N
  ): N extends 'service_crm_webhook'
    ? EventHook
    : IsolatedHook<HookTypes[N]['in'], HookTypes[N]['out']> {
    return this.strapi.get('hooks').get(name) as never;
  }

  /** True if handlers of `service_crm_webhook` listen. */
  hasListeners(): boolean {
    return this.own.getHandlers().length > 0;
  }

  /**
   * Tells all handlers of `service_crm_webhook`, each in its own time and with a copy of its own;
   * resolves when all are done, and never rejects.
   */
  async tell(events: readonly SentEvent[]): Promise<void> {
    const hook = this.own;
    const tellOne = async (handler: HookHandler<EventToSend, void>): Promise<void> => {
      let count = 0;
      for (const { event, text } of events) {
        await hook.guarded(handler, { event, data: JSON.parse(text) as EventToSend['data'] });
        count += 1;
        if (count % A_TURN === 0) await nextTurn();
      }
    };
    await Promise.all(hook.getHandlers().map(tellOne));
  }

  /** Ours, whatever another plugin put into the registry in its place. */
  private get own(): OwnHook {
    if (!this.event) throw new Error('The hooks of the plugin switchboard are not registered.');
    return this.event;
  }

  /**
   * Puts the seven hooks of docs/contract-webhooks.md#hooks into the host's registry, so that any plugin can say
   * `strapi.hook('service_crm_webhook_payload').register(handler)` in its `bootstrap()`.
   *
   * @param send what calling `service_crm_webhook` does; nothing if only the catalogue is needed. It
   *   never throws for what is wrong with the event
   */
  register(send: (event: unknown, data: unknown) => Promise<void> = async () => undefined): void {
    const { log } = this.strapi;
    const inside = { rest: REST_INSIDE_WRITES };
    const filter = <T>(
      name: keyof HookTypes,
      rules?: FilterRules<T>,
      options?: HookOptions
    ): [string, unknown] => [name, createFilter<T>(name, log, rules, options)];
    this.event = createHook<EventToSend, void>('service_crm_webhook', log, async () => undefined);
    const event = Object.assign(this.event as object, {
      // Both ways of asking are in use elsewhere: one value, or a name and its data.
      call: (given: EventToSend | string, data?: object): Promise<void> =>
        typeof given === 'object' && given !== null
          ? send(given.event, given.data)
          : send(given, data),
    });
    const hooks = [
      filter('service_crm_webhook_events', eventsRules, inside),
      ['service_crm_webhook', event],
      filter('service_crm_webhook_payload', payloadRules, inside),
      filter('service_crm_webhook_request_args', requestRules),
      ['service_crm_webhook_delivered', createAction('service_crm_webhook_delivered', log)],
      filter('service_crm_webhook_allow_local', undefined, inside),
      filter('service_crm_webhook_log_days', daysRules),
    ] as const;
    for (const [name, hook] of hooks) this.strapi.get('hooks').set(name, hook as never);
  }
}
