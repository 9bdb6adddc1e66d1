import type { Core } from '@strapi/strapi';
import type { Recovery, Webhook } from '../../../../shared/contracts/webhooks';
import { matchingEntries, newestEntry, type ReplayRange } from '../journal/matching';
import type { ReplayFilter } from '../recoveries/sources';
import { insertRecovery } from '../recoveries/store';
import { announceRecoveries } from '../recovering/running';
import type { Replay } from './inputs';
import { toRecovery } from './recoveries-service';

const rangeOf = ({ from, to, events }: Replay): ReplayRange => ({
  from: Date.parse(from),
  to: Date.parse(to),
  events: events ?? null,
});

const count = async (
  strapi: Core.Strapi,
  webhook: Webhook,
  range: ReplayRange,
  boundary: number
): Promise<number> => {
  let matching = 0;
  for await (const part of matchingEntries(strapi, webhook, range, boundary)) {
    matching += part.length;
  }
  return matching;
};

/**
 * Sends a webhook what it asks for of the journal and has not had, or says how much that is.
 * docs/management-api.md#replaying. For a site that has a journal.
 */
export const replay = async (
  strapi: Core.Strapi,
  webhook: Webhook,
  input: Replay
): Promise<Recovery | { matching: number }> => {
  const range = rangeOf(input);
  const boundary = await newestEntry(strapi);
  const matching = await count(strapi, webhook, range, boundary);
  if (input.dry_run) return { matching };
  const filter: ReplayFilter = { webhook: webhook.id, ...range };
  const row = await insertRecovery(strapi, { kind: 'journal', filter, boundary, matching });
  announceRecoveries(strapi, Number(row.id));
  return toRecovery(row);
};
