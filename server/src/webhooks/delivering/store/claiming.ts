import type { Core } from '@strapi/strapi';
import type { LeasedRow, LeasedRows } from '../../../database/lease-types';
import type { CappedClaim, GroupRoom, LeaseCap } from '../../../scheduling/types';
import { createCarefulClaims } from './careful-claims';
import { isCareful, type KnownManners, type Manners } from '../../deliveries/limits';

/** For so long webhooks with manners are claimed of that were not known to have any, before others. */
const CAREFUL_TOGETHER_MS = 100;

export interface Claiming {
  /** Claims of several webhooks, each as it wants it. */
  claim(rooms: readonly GroupRoom[]): Promise<LeasedRow[]>;
  /** Claims of one as long as all nodes together stay within its cap. */
  claimWithin(webhook: number, limit: number, cap: LeaseCap): Promise<CappedClaim<LeasedRow>>;
}

/**
 * Claims deliveries of webhooks: of those with manners (an order, a rate, a pause) with care.
 * @param hearsAgain is told when more of a webhook may be claimed that its rate held back
 */
export const createClaiming = (
  strapi: Core.Strapi,
  leased: LeasedRows,
  known: KnownManners,
  hearsAgain: (webhook: number, at: number) => void
): Claiming => {
  const carefully = createCarefulClaims(strapi, leased, known);

  const claimCarefully = async (
    webhook: number,
    limit: number,
    cap: LeaseCap | null = null
  ): Promise<CappedClaim<LeasedRow>> => {
    const { leases, isFull, againAt } = await carefully({ webhook, limit, cap });
    if (againAt !== null) hearsAgain(webhook, againAt);
    return { leases, isFull };
  };

  /** Nothing is claimed of a webhook that is left alone for now: it would only be given back. */
  const isPaused = (manners: Manners | undefined): boolean =>
    manners !== undefined && manners.pausedUntil > leased.now();

  /** Of several webhooks those that are claimed of with care, and the rest. */
  const apart = async (
    rooms: readonly GroupRoom[]
  ): Promise<{ plain: GroupRoom[]; careful: GroupRoom[] }> => {
    const manners = await known.of(rooms.map(({ group }) => group));
    const needsCare = ({ group }: GroupRoom): boolean => {
      const own = manners.get(group);
      return own !== undefined && isCareful(own);
    };
    const served = rooms.filter(({ group }) => !isPaused(manners.get(group)));
    return {
      plain: served.filter((room) => !needsCare(room)),
      careful: served.filter(needsCare),
    };
  };

  const claim = async (rooms: readonly GroupRoom[]): Promise<LeasedRow[]> => {
    const { plain, careful } = await apart(rooms);
    const claimed: LeasedRow[] = [];
    // What is leased waits until all is claimed: so what may take long comes first, and only for a while.
    const until = performance.now() + CAREFUL_TOGETHER_MS;
    for (const { group, limit } of careful) {
      if (performance.now() < until) claimed.push(...(await claimCarefully(group, limit)).leases);
      else hearsAgain(group, leased.now());
    }
    const [only, ...others] = plain;
    if (others.length > 0) claimed.push(...(await leased.claimGroups(plain)));
    else if (only) claimed.push(...(await leased.claim(only.group, only.limit)));
    return claimed;
  };

  return {
    claim,
    async claimWithin(webhook, limit, cap) {
      const manners = (await known.of([webhook])).get(webhook);
      if (isPaused(manners)) return { leases: [], isFull: false };
      const own = { ...cap, atOnce: manners?.concurrency ?? cap.atOnce };
      return manners && isCareful(manners)
        ? claimCarefully(webhook, limit, cap)
        : leased.claimWithin(webhook, limit, own);
    },
  };
};
