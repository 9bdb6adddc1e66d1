import type { Core } from '@strapi/strapi';
import { getPublisher } from './publisher';

/**
 * For other plugins: `strapi.service('plugin::switchboard.events').send('loyalty.earned', data)`.
 * The typed twin of `strapi.hook('service_crm_webhook').call({ event, data })`.
 */
export interface EventsService {
  /**
   * Sends an event to the webhooks that asked for it, within the current transaction if there is
   * one. @returns the number of deliveries queued; 0 where nobody asked.
   */
  send(event: string, data: unknown): Promise<number>;
}

export const createEventsService = ({ strapi }: { strapi: Core.Strapi }): EventsService => ({
  send: (event, data) => getPublisher(strapi).publish([{ event, data }]),
});
