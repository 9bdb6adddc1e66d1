import { setTimeout as sleep } from 'node:timers/promises';
import type { Core } from '@strapi/strapi';
import { nextTurn } from '../runtime/event-loop';
import { errorText } from '../runtime/text';
import { daysRules, eventsRules, payloadRules, requestRules } from './filter-rules';
import type { EventToSend, HookTypes } from './types';

export type * from './types';

/** A handler of any of the plugin's hooks; each hook's own types are in `types.ts`. */
type HookHandler<In = never, Out = unknown> = (value: In) => Out | Promise<Out>;

type Log = { error(message: string): void };

interface HookOptions {
  /** How long a handler may take; 5 seconds by default. */
  deadlineMs?: number;
  /** How long a handler that hung is left out, in milliseconds: twice as long each time it hangs again. */
  rest?: { firstMs: number; longestMs: number };
}

/** For hooks that are called inside a write, for which others wait. */
const INSIDE_WRITES: HookOptions = { rest: { firstMs: 60_000, longestMs: 3_600_000 } };

class LateError extends Error {}

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof (value as { then?: unknown } | null)?.then === 'function';

const withDeadline = async <T>(pending: PromiseLike<T>, milliseconds: number): Promise<T> => {
  const answered = new AbortController();
  const late = async (): Promise<never> => {
    await sleep(milliseconds, undefined, { signal: answered.signal });
    throw new LateError(`no answer within ${milliseconds} ms`);
  };
  try {
    return await Promise.race([pending, late()]);
  } finally {
    answered.abort();
  }
};

/** A hook as the host has them: a handler that throws or hangs is logged by name and skipped. Methods need no `this`. */
abstract class IsolatedHook<In, Out> {
  private readonly handlers: HookHandler<In, Out>[] = [];
  /** Handlers that hung the last time they were asked; times of the process's clock. */
  private readonly resting = new Map<HookHandler<In, Out>, { until: number; forMs: number }>();

  /** Not to be seen from outside: a site may print a hook. */
  readonly #log: Log;

  constructor(
    private readonly name: string,
    log: Log,
    private readonly options: HookOptions = {}
  ) {
    this.#log = log;
  }

  readonly getHandlers = (): HookHandler<In, Out>[] => this.handlers;

  readonly register = (handler: HookHandler<In, Out>): this => {
    this.handlers.push(handler);
    return this;
  };

  readonly delete = (handler: HookHandler<In, Out>): this => {
    const at = this.handlers.indexOf(handler);
    if (at >= 0) this.handlers.splice(at, 1);
    this.resting.delete(handler);
    return this;
  };

  // A copy: a handler may take itself off the list while it runs.
  readonly call = (value: In): Promise<Out> => this.run([...this.handlers], value);

  protected abstract run(handlers: readonly HookHandler<In, Out>[], value: In): Promise<Out>;

  /** @param accept is given the handler's result; errors that it throws are logged as the handler's */
  async guarded(handler: HookHandler<In, Out>, value: In, accept?: (returned: Out) => void) {
    if (this.isResting(handler)) return;
    const { deadlineMs = 5_000, rest } = this.options;
    try {
      const returned = handler(value);
      const settled = isThenable(returned) ? await withDeadline(returned, deadlineMs) : returned;
      this.resting.delete(handler);
      accept?.(settled as Out);
    } catch (error) {
      let left = '';
      if (rest && error instanceof LateError) {
        // Another call that it let hang has found it out.
        if (this.isResting(handler)) return;
        const before = this.resting.get(handler)?.forMs ?? rest.firstMs / 2;
        const forMs = Math.min(before * 2, rest.longestMs);
        this.resting.set(handler, { until: performance.now() + forMs, forMs });
        left = `; it is left out for ${Math.ceil(forMs / 1000)} seconds`;
      }
      this.#log.error(
        `switchboard: a handler of ${this.name} (${handler.name || 'anonymous'}) failed: ${errorText(error)}${left}`
      );
    }
  }

  private isResting(handler: HookHandler<In, Out>): boolean {
    return (this.resting.get(handler)?.until ?? 0) > performance.now();
  }
}

/** The rules of a filter for its handlers besides not throwing. */
export interface FilterRules<T> {
  /** The value for a handler: a copy, if a handler that is left out must leave no trace. */
  prepare(current: T): T;
  /** The value for the next handler. @throws Error that says what is wrong; the handler is then skipped */
  accept(returned: unknown, handed: T): T;
}

const ANYTHING: FilterRules<unknown> = {
  prepare: (current) => current,
  accept: (returned, handed) => (returned === undefined ? handed : returned),
};

/** Runs handlers in order, each on the previous result; null stops. Without rules, undefined keeps the value. */
export class Filter<T> extends IsolatedHook<T, T> {
  constructor(
    name: string,
    log: Log,
    private readonly rules: FilterRules<T> = ANYTHING as FilterRules<T>,
    options?: HookOptions
  ) {
    super(name, log, options);
  }

  protected async run(handlers: readonly HookHandler<T, T>[], value: T): Promise<T> {
    let current = value;
    for (const handler of handlers) {
      const handed = this.rules.prepare(current);
      await this.guarded(handler, handed, (returned) => {
        current = this.rules.accept(returned, handed);
      });
      if (current === null) break;
    }
    return current;
  }
}

/** Handlers run one after the other with the same value; what they return is not looked at. */
export class Action<T> extends IsolatedHook<T, void> {
  protected async run(handlers: readonly HookHandler<T, void>[], value: T): Promise<void> {
    for (const handler of handlers) await this.guarded(handler, value);
  }
}

/** An event as it was sent, its data as JSON. */
export interface SentEvent {
  event: string;
  text: string;
}

/** `service_crm_webhook`: call it to send an event; its handlers get every event there is. */
interface EventHook extends Omit<Action<EventToSend>, 'call'> {
  call(value: EventToSend): Promise<void>;
  call(event: string, data?: object): Promise<void>;
}

/** The maximum of events published to handlers in one turn of the event loop. */
const A_TURN = 50;

export class Hooks {
  private event: Action<EventToSend> | undefined;

  constructor(private readonly strapi: Core.Strapi) {}

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

  /** Tells all handlers side by side. Resolves when all are done, and never rejects. */
  async tell(events: readonly SentEvent[]): Promise<void> {
    const hook = this.own;
    const tellOne = async (handler: HookHandler<EventToSend, void>): Promise<void> => {
      for (const [at, { event, text }] of events.entries()) {
        await hook.guarded(handler, { event, data: JSON.parse(text) as EventToSend['data'] });
        if ((at + 1) % A_TURN === 0) await nextTurn();
      }
    };
    await Promise.all(hook.getHandlers().map(tellOne));
  }

  /** The plugin's own hook, even if another plugin replaced it in the registry. */
  private get own() {
    if (!this.event) throw new Error('The hooks of the plugin switchboard are not registered.');
    return this.event;
  }

  /**
   * Registers the seven hooks of docs/contract-webhooks.md#hooks for the `bootstrap()` of any plugin.
   * @param send runs on a call of `service_crm_webhook`; it does not throw on a wrong event
   */
  register(send: (event: unknown, data: unknown) => Promise<void> = async () => undefined): void {
    const { log } = this.strapi;
    const filter = <T>(name: keyof HookTypes, rules?: FilterRules<T>, options?: HookOptions) =>
      [name, new Filter<T>(name, log, rules, options)] as const;
    this.event = new Action<EventToSend>('service_crm_webhook', log);
    const event = Object.assign(this.event as object, {
      // Both ways of asking are in use elsewhere: one value, or a name and its data.
      call: (given: EventToSend | string, data?: object): Promise<void> =>
        typeof given === 'object' && given !== null
          ? send(given.event, given.data)
          : send(given, data),
    });
    const hooks = [
      filter('service_crm_webhook_events', eventsRules, INSIDE_WRITES),
      ['service_crm_webhook', event],
      filter('service_crm_webhook_payload', payloadRules, INSIDE_WRITES),
      filter('service_crm_webhook_request_args', requestRules),
      ['service_crm_webhook_delivered', new Action('service_crm_webhook_delivered', log)],
      filter('service_crm_webhook_allow_local', undefined, INSIDE_WRITES),
      filter('service_crm_webhook_log_days', daysRules),
    ] as const;
    for (const [name, hook] of hooks) this.strapi.get('hooks').set(name, hook as never);
  }
}
