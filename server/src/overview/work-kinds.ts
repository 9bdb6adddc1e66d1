import { RECORDS } from '../pos/processing/record-store';
import { DELIVERIES } from '../webhooks/deliveries/store';
import { MANUAL_REQUESTS } from '../webhooks/sending/by-hand';
import { RECOVERIES } from '../webhooks/recoveries/job';

/** Every kind of work that the scheduler serves; with `scheduler.engine: 'bullmq'` each has a queue. */
export const WORK_KINDS = [DELIVERIES, RECOVERIES, MANUAL_REQUESTS, RECORDS];
