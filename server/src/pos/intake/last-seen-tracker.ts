import { errorText } from '../../runtime/text';
import type { Core } from '@strapi/strapi';
import { currentExecutor, type Detached, table } from '../../database/connection';
import { type ConnectionRow, CONNECTIONS_TABLE } from '../tables';

/** What the owner is told about a till is at most this old. */
const EVERY_MS = 5_000;

export interface LastSeenTracker {
  /** A request that was signed by the connection. */
  seen(connection: ConnectionRow, skewSeconds: number, atMs: number): void;
  /** A request of the connection's key that was refused. */
  failed(connection: ConnectionRow, code: string, atMs: number): void;
}

/**
 * Writes when a till was last seen and what it was last refused for: beside its requests, seldom,
 * and never in their way. What is written in between waits for the next time.
 */
export const createLastSeenTracker = (strapi: Core.Strapi, detached: Detached): LastSeenTracker => {
  const lastWrite = new Map<number, number>();
  const pending = new Map<number, Record<string, number | string>>();

  const write = async (id: number): Promise<void> => {
    const values = pending.get(id);
    pending.delete(id);
    if (!values) return;
    try {
      await table(strapi, await currentExecutor(strapi), CONNECTIONS_TABLE)
        .where({ id })
        .update(values);
    } catch (error) {
      strapi.log.debug(`switchboard: a sighting was not written: ${errorText(error)}`);
    }
  };

  const note = (id: number, values: Record<string, number | string>, atMs: number): void => {
    const scheduled = pending.has(id);
    pending.set(id, { ...pending.get(id), ...values });
    if (scheduled) return;
    const wait = Math.max(0, (lastWrite.get(id) ?? 0) + EVERY_MS - atMs);
    lastWrite.set(id, atMs + wait);
    detached(() => setTimeout(() => void write(id), wait).unref());
  };

  return {
    seen: ({ id }, skewSeconds, atMs) =>
      note(id, { last_seen_at: atMs, clock_skew_seconds: skewSeconds }, atMs),
    failed: ({ id }, code, atMs) => note(id, { last_error: code, last_error_at: atMs }, atMs),
  };
};
