import type { Core } from '@strapi/strapi';
import { daysRules, eventsRules, payloadRules, requestRules } from './filter-rules';
import {
  createAction,
  createFilter,
  createHook,
  HANDLER_DEADLINE_MS,
  type HookHandler,
  type IsolatedHook,
  REST_INSIDE_WRITES,
} from './isolated-hook';
import type {
  EventMap,
  EventToSend,
  HookTypes,
  PayloadFilterValue,
  RequestFilterValue,
} from './types';

/** An event as it was sent, its data as JSON. */
export interface ToldEvent {
  event: string;
  text: string;
}

/** `service_crm_webhook`: call it to send an event; its handlers hear every event there is. */
interface EventHook extends IsolatedHook<EventToSend, void> {
  call(value: EventToSend): Promise<void>;
  call(event: string, data?: object): Promise<void>;
}

/** So many events are told in one turn of the event loop. */
const A_TURN = 50;

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A hook as it is made here, with what only the plugin may do. */
type OwnHook = ReturnType<typeof createHook<EventToSend, void>>;

export type * from './types';

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

  /** Whether handlers of `service_crm_webhook` listen. */
  hasListeners(): boolean {
    return this.own.getHandlers().length > 0;
  }

  /**
   * Tells all handlers of `service_crm_webhook`, each in its own time and with a copy of its own;
   * resolves when all are done, and never rejects.
   */
  async tell(events: readonly ToldEvent[]): Promise<void> {
    const hook = this.own;
    const tellOne = async (handler: HookHandler<EventToSend, void>): Promise<void> => {
      let told = 0;
      for (const { event, text } of events) {
        await hook.guarded(handler, { event, data: JSON.parse(text) as EventToSend['data'] });
        told += 1;
        if (told % A_TURN === 0) await nextTurn();
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
   * @param send  what calling `service_crm_webhook` does; nothing for who wants the catalogue alone. It
   *   never throws for what is wrong with the event
   */
  register(send: (event: unknown, data: unknown) => Promise<void> = async () => undefined): void {
    const { log } = this.strapi;
    const named = <N extends keyof HookTypes>(name: N, create: (name: N) => unknown): void => {
      this.strapi.get('hooks').set(name, create(name) as never);
    };
    named('service_crm_webhook_events', (name) =>
      createFilter<EventMap>(name, log, undefined, eventsRules as never, REST_INSIDE_WRITES)
    );
    named('service_crm_webhook', (name) => {
      const hook = createHook<EventToSend, void>(
        name,
        log,
        HANDLER_DEADLINE_MS,
        async () => undefined
      );
      this.event = hook;
      return Object.assign(hook, {
        // Both ways of asking are in use elsewhere: one value, or a name and its data.
        call: (given: EventToSend | string, data?: object): Promise<void> =>
          typeof given === 'object' && given !== null
            ? send(given.event, given.data)
            : send(given, data),
      });
    });
    named('service_crm_webhook_payload', (name) =>
      createFilter<PayloadFilterValue | null>(
        name,
        log,
        undefined,
        payloadRules,
        REST_INSIDE_WRITES
      )
    );
    named('service_crm_webhook_request_args', (name) =>
      createFilter<RequestFilterValue>(name, log, undefined, requestRules)
    );
    named('service_crm_webhook_delivered', (name) => createAction(name, log));
    named('service_crm_webhook_allow_local', (name) =>
      createFilter<boolean>(name, log, undefined, undefined, REST_INSIDE_WRITES)
    );
    named('service_crm_webhook_log_days', (name) =>
      createFilter<number>(name, log, undefined, daysRules)
    );
  }
}
