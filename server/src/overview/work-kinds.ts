import { RECORDS } from '../pos/processing/record-store';
import { DELIVERIES } from '../webhooks/delivering/announce';
import { MANUAL_REQUESTS } from '../webhooks/delivering/by-hand/ask-another-process';
import { RECOVERIES } from '../webhooks/recovering/running';

/** Every kind of work that the scheduler serves; with `scheduler.engine: 'bullmq'` each has a queue. */
export const WORK_KINDS = [DELIVERIES, RECOVERIES, MANUAL_REQUESTS, RECORDS];
