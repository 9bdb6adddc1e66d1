import type { Recovery, RecoveryPreview } from '../../shared/contracts/webhooks';
import type { As, Site } from '../support/site';
import { waitFor } from '../support/wait';
import { insertDeliveries, sql } from './delivery-support';

export const RECOVERIES = '/api/fw-crm/v1/webhook-recoveries';

const HOUR_MS = 3_600_000;

/** Deliveries that were given up. */
export const insertFailed = (
  site: Site,
  webhook: number,
  count: number,
  changes: Record<string, unknown> = {}
): Promise<void> =>
  insertDeliveries(site, webhook, count, {
    status: 'failed',
    tries: 7,
    next_attempt_at: null,
    finished_at: Date.now(),
    error: 'http_500',
    ...changes,
  });

/** Deliveries whose next try is in an hour. */
export const insertFailing = (
  site: Site,
  webhook: number,
  count: number,
  changes: Record<string, unknown> = {}
): Promise<void> => {
  const later = Date.now() + HOUR_MS;
  return insertDeliveries(site, webhook, count, {
    tries: 2,
    next_attempt_at: later,
    error: 'http_503',
    ...changes,
  });
};

export const startRecovery = async (
  site: Site,
  body: Record<string, unknown>
): Promise<Recovery> => {
  const answer = await site.request<Recovery>('POST', RECOVERIES, { body });
  if (answer.status !== 201) throw new Error(`a recovery: ${answer.status} ${answer.text}`);
  return answer.body;
};

export const previewRecovery = async (
  site: Site,
  filter: Record<string, unknown>
): Promise<RecoveryPreview> => {
  const answer = await site.request<RecoveryPreview>('POST', `${RECOVERIES}/preview`, {
    body: { filter },
  });
  if (answer.status !== 200) throw new Error(`a preview: ${answer.status} ${answer.text}`);
  return answer.body;
};

export const getRecovery = async (site: Site, id: number, as?: As): Promise<Recovery> =>
  (await site.request<Recovery>('GET', `${RECOVERIES}/${id}`, { as })).body;

export const control = (site: Site, id: number, action: 'pause' | 'resume' | 'cancel') =>
  site.request<Recovery>('POST', `${RECOVERIES}/${id}/${action}`);

/** Waits until a recovery is as `probe` wants it. */
export const waitForRecovery = (
  site: Site,
  id: number,
  probe: (recovery: Recovery) => boolean,
  timeout = 60_000
): Promise<Recovery> =>
  waitFor(
    async () => {
      const recovery = await getRecovery(site, id);
      return probe(recovery) ? recovery : undefined;
    },
    timeout,
    'a recovery in that state'
  );

export const isDone = ({ state }: Recovery): boolean => state === 'done';

/** The ids of a webhook's deliveries, as receivers know them, in the order they were made. */
export const deliveryIds = async (site: Site, webhook: number): Promise<string[]> =>
  (
    await sql<{ document_id: string }>(
      site,
      'SELECT document_id FROM switchboard_deliveries WHERE webhook_id = ? ORDER BY created_at, id',
      [webhook]
    )
  ).map(({ document_id: id }) => id);
