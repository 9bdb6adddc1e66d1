import type { Core } from '@strapi/strapi';
import { getOptions } from '../../../config';
import { getScheduler } from '../../../scheduling';
import { createManualRequestStore, type ManualAnswer, type ManualRequest } from './request-store';

/** The kind of work that requests to send by hand are, as the scheduler and its log lines name it. */
export const MANUAL_REQUESTS = 'switchboard sending by hand';

/** All requests are one group: there are few, and each is done beside the others. */
export const MANUAL_GROUP = 1;

const LOOK_EVERY_MS = 100;
/** Beyond an attempt's deadline: time for slow hooks and for recording. */
const TAKEN_MARGIN_MS = 10_000;

/** Why nobody answered: no process took the request, or the one that did has not said what came of it. */
export type Unanswered = 'nobody sends' | 'no answer';

const pause = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, LOOK_EVERY_MS);
  });

/**
 * Has another process of the site send something now, and waits for what came of it. Other processes
 * look for requests once a second, or at once where the scheduler reaches them.
 * @returns `nobody sends` after `timeoutMs` and `pollSeconds` (docs/operations.md#several-nodes); the
 * request is taken back then, and nothing was sent.
 */
export const askAnotherProcess = async (
  strapi: Core.Strapi,
  request: ManualRequest
): Promise<ManualAnswer | Unanswered> => {
  const { timeoutMs, pollSeconds } = getOptions(strapi).webhooks;
  const store = createManualRequestStore(strapi);
  const patience = timeoutMs + pollSeconds * 1000;
  const token = await store.ask(request, patience);
  getScheduler(strapi).announce(MANUAL_REQUESTS, MANUAL_GROUP, store.now());
  const giveUpAt = performance.now() + patience;
  let takenUntil: number | undefined;
  for (;;) {
    await pause();
    const found = await store.look(token);
    if (found.state === 'answered') {
      await store.remove(token);
      return found.answer;
    }
    const now = performance.now();
    if (found.state === 'taken') takenUntil ??= now + timeoutMs + TAKEN_MARGIN_MS;
    if (takenUntil !== undefined) {
      if (now < takenUntil) continue;
      await store.remove(token);
      return 'no answer';
    }
    if (now >= giveUpAt && (await store.withdraw(token))) return 'nobody sends';
  }
};
