import type { Core } from '@strapi/strapi';
import type { RecoveryFilter } from '../../../../shared/contracts/webhooks';
import { getModules } from '../../modules';
import { moduleHolding } from '../sending/modules-off';
import { sendAgain } from '../deliveries/again';
import { matchingDeliveries, type MatchingRequest } from '../delivering/store/matching';
import { filterOf } from '../deliveries/log-query';
import type { RecoverySource } from './source';

const RECOVERABLE = ['failing', 'failed'] as const;

/**
 * What of the log a recovery's filter asks for: failing and failed deliveries, whatever it says.
 * @param boundary the id of the newest row that counts
 */
export const matchingOf = (
  { ids, state, ...query }: RecoveryFilter,
  boundary: number
): MatchingRequest => {
  const { filter, search } = filterOf(query);
  const states = RECOVERABLE.filter((one) => state === undefined || one === state);
  return { filter: { ...filter, states, ids }, search, boundary };
};

/** Failing and failed deliveries of the log, to be sent again; docs/contract-webhooks.md#recoveries. */
export const createDeliveriesSource = (strapi: Core.Strapi): RecoverySource => ({
  async collect({ filter, boundary }, keep) {
    const request = matchingOf(JSON.parse(filter) as RecoveryFilter, Number(boundary));
    for await (const part of matchingDeliveries(strapi, request)) {
      const found = part.map(({ place: { id, at }, webhook }) => ({
        ref: id,
        webhook,
        at,
        delivery: id,
      }));
      if (!(await keep(found))) return;
    }
  },

  async queue(trx, items) {
    const enabled = await getModules(strapi).enabled();
    const held = new Map<string, boolean>();
    const isHeld = async (event: string): Promise<boolean> => {
      const known = held.get(event) ?? (await moduleHolding(strapi, event, enabled)) !== null;
      held.set(event, known);
      return known;
    };
    const refs = items.map(({ ref }) => Number(ref));
    const tries = await sendAgain(strapi, trx, refs, isHeld);
    return new Map([...tries].map(([id, before]) => [id, { delivery: id, tries: before }]));
  },
});
