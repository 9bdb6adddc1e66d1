import type { Core } from '@strapi/strapi';
import { type Executor, table } from '../../database/connection';
import { answeredSinceRotation } from '../webhook';
import { type WebhookRow, WEBHOOKS_TABLE } from '../tables';

/** Whether an attempt that was answered 2xx is still to be noted of its webhook, as the attempt read it. */
export const isUnnoted = (row: WebhookRow): boolean => answeredSinceRotation(row) === false;

/**
 * Notes of webhooks, as their attempts read them, that one was answered 2xx since the rotation whose
 * overlap is under way; tests count, for they are how somebody tries the new secret. Once a rotation: the
 * next attempts read that it is noted.
 */
export const noteAnsweredRotations = async (
  strapi: Core.Strapi,
  executor: Executor,
  answered: readonly WebhookRow[]
): Promise<void> => {
  const unnoted = answered.filter(isUnnoted);
  // In the order of ids, as all that locks several webhooks.
  const rotations = [...new Map(unnoted.map((row) => [Number(row.id), row])).values()].sort(
    (a, b) => Number(a.id) - Number(b.id)
  );
  for (const { id, previous_secret_until: until } of rotations) {
    await table(strapi, executor, WEBHOOKS_TABLE)
      // Of a rotation that came meanwhile the attempt says nothing.
      .where({ id, previous_secret_until: until })
      .update({ answered_rotation: until });
  }
};
