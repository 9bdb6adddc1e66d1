import type { Core } from '@strapi/strapi';
import type { Executor } from '../../../database/connection';
import type { LeasedRows } from '../../../database/lease-types';
import { siteInstance } from '../../../database/site-instance';
import type { NewDelivery } from './delivery-store-types';
import { lineOf } from '../../deliveries/ordering';
import { insertMessages, type SharedMessage } from '../../deliveries/messages';

/** Writes rows of deliveries that are due, or leased, for `dueIn` milliseconds from when they were made. */
export const insertDeliveries = (
  strapi: Core.Strapi,
  leased: LeasedRows,
  executor: Executor,
  deliveries: readonly NewDelivery[],
  dueIn = 0
): Promise<void> => {
  const site = siteInstance(strapi);
  return leased.insert(
    executor,
    deliveries.map((one) => ({
      group: one.webhook,
      dueAt: one.at + dueIn,
      columns: {
        document_id: one.deliveryId,
        site_instance: site,
        event: one.event,
        status: 'pending',
        tries: 0,
        is_test: one.isTest,
        next_attempt_at: one.at,
        created_at: one.at,
        finished_at: null,
        error: null,
        subject_type: one.subject?.type ?? null,
        subject_id: one.subject?.id ?? null,
        subject_label: one.subject?.label ?? null,
        line: one.isOrdered && one.subject ? lineOf(one.subject) : null,
        replayed: one.replayed ?? false,
        url: one.url,
        body: typeof one.body === 'string' ? one.body : null,
        message_id: typeof one.body === 'string' ? null : one.body.id,
        // Attempts of versions before 0.2 are here; those since are rows of their own.
        attempts: '[]',
      },
    }))
  );
};

/** Queues deliveries, and each message that they share with the first of them. */
export const queueDeliveries = async (
  strapi: Core.Strapi,
  leased: LeasedRows,
  executor: Executor,
  deliveries: readonly NewDelivery[]
): Promise<void> => {
  const messages = new Set<SharedMessage>();
  for (const { body } of deliveries) {
    if (typeof body !== 'string' && body.id === null) messages.add(body);
  }
  await insertMessages(strapi, executor, [...messages]);
  await insertDeliveries(strapi, leased, executor, deliveries);
};
