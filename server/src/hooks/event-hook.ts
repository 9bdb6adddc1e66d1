import {
  HANDLER_DEADLINE_MS,
  createHook,
  type HookHandler,
  type HookLog,
  type IsolatedHook,
} from './isolated-hook';
import type { EventToSend } from './types';

/** An event as it was sent, its data as JSON. */
export interface ToldEvent {
  event: string;
  text: string;
}

/** `service_crm_webhook`: call it to send an event; its handlers hear every event there is. */
export interface EventHook extends IsolatedHook<EventToSend, void> {
  call(value: EventToSend): Promise<void>;
  call(event: string, data?: object): Promise<void>;
}

/** The same, with what only the publisher may do. */
export interface OwnEventHook extends EventHook {
  /**
   * Tells all handlers, each in its own time and with a copy of its own; resolves when all are
   * done, and never rejects.
   */
  tell(events: readonly ToldEvent[]): Promise<void>;
}

/** So many events are told in one turn of the event loop. */
const A_TURN = 50;

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** @param send sends what a stranger calls the hook with; it never throws for what is wrong with it */
export const createEventHook = (
  name: string,
  log: HookLog,
  send: (event: unknown, data: unknown) => Promise<void>,
  deadlineMs = HANDLER_DEADLINE_MS
): OwnEventHook => {
  const hook = createHook<EventToSend, void>(name, log, deadlineMs, async () => undefined);

  const tellOne = async (
    handler: HookHandler<EventToSend, void>,
    events: readonly ToldEvent[]
  ): Promise<void> => {
    let told = 0;
    for (const { event, text } of events) {
      await hook.guarded(handler, { event, data: JSON.parse(text) as EventToSend['data'] });
      told += 1;
      if (told % A_TURN === 0) await nextTurn();
    }
  };

  return Object.assign(hook, {
    // Both ways of asking are in use elsewhere: one value, or a name and its data.
    call: (given: EventToSend | string, data?: object): Promise<void> =>
      typeof given === 'object' && given !== null
        ? send(given.event, given.data)
        : send(given, data),
    async tell(events: readonly ToldEvent[]) {
      await Promise.all(hook.getHandlers().map((handler) => tellOne(handler, events)));
    },
  }) as unknown as OwnEventHook;
};
