import type { Core } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import { getOptions } from '../../../config';
import type { Detached } from '../../../database/connection';
import { createFaultLog } from '../../../database/errors/fault-log';
import { errorText } from '../../../runtime/text';
import { STOP_MARGIN_MS, stopWithin } from '../../../scheduling/stop-within';
import type { GroupHandler } from '../../../scheduling/types';
import type { Sender } from '../../sending/send';
import { leaseTimes } from '../store/lease-times';
import { MANUAL_GROUP } from './ask-another-process';
import {
  createManualRequestStore,
  type ManualAnswer,
  type ManualRequest,
  type TakenRequest,
} from './request-store';
import { retryNow, testNow } from '../../sending/by-hand';

const POLL_MS = 1000;
const TAKEN_AT_ONCE = 16;
/** Nobody waits so long: whoever made such a request has died, or its answer was lost. */
const FORGOTTEN_AFTER_MS = 3_600_000;

const perform = async (
  strapi: Core.Strapi,
  sender: Sender,
  request: ManualRequest
): Promise<ManualAnswer> => {
  try {
    if (request.kind === 'retry') {
      return { kind: 'retry', refusal: await retryNow(strapi, sender, request.delivery) };
    }
    const { webhook, event } = request;
    return { kind: 'test', result: await testNow(strapi, sender, webhook, event) };
  } catch (error) {
    const kind = error instanceof errors.NotFoundError ? 'missing' : 'failed';
    return { kind, message: kind === 'missing' ? (error as Error).message : errorText(error) };
  }
};

/**
 * Does what processes that do not send ask for: tests and retries by hand. They are beside the limits
 * of simultaneous attempts, as on a node that sends by itself, because somebody waits for the answer.
 */
export const createManualRequestHandler = (
  strapi: Core.Strapi,
  sender: Sender,
  detached: Detached
): GroupHandler => {
  const store = createManualRequestStore(strapi);
  const logFault = createFaultLog(strapi.log);
  const underWay = new Set<Promise<void>>();
  let stopping = false;

  const answer = async ({ token, request }: TakenRequest): Promise<void> => {
    try {
      await store.answer(token, await perform(strapi, sender, request));
    } catch (error) {
      logFault('switchboard sending by hand: an answer could not be written', error);
    }
  };

  const start = (taken: TakenRequest): void => {
    const work: Promise<void> = detached(() => answer(taken)).finally(() => underWay.delete(work));
    underWay.add(work);
  };

  const take = async (): Promise<number | null> => {
    if (stopping) return null;
    const taken = await store.take(TAKEN_AT_ONCE);
    for (const one of taken) start(one);
    if (taken.length > 0) await store.removeOlderThan(FORGOTTEN_AFTER_MS);
    return taken.length < TAKEN_AT_ONCE ? null : store.now();
  };

  return {
    pollMs: POLL_MS,
    now: () => store.now(),
    dueTimes: async () =>
      new Map((await store.isWaiting()) ? [[MANUAL_GROUP, store.now()] as const] : []),
    work: take,
    /** For engines that share groups with other nodes: one node takes what there is. */
    takeTurn: take,
    turns: { groups: 1, nodes: 1 },
    stop() {
      stopping = true;
      const { longestMs } = leaseTimes(getOptions(strapi).webhooks.timeoutMs);
      const end = Promise.all(underWay).then(() => undefined);
      return stopWithin(longestMs + STOP_MARGIN_MS, end);
    },
  };
};
