import type { Core } from '@strapi/strapi';
import { currentExecutor, inTransaction, table } from '../../database/connection';
import { withTransientRetry } from '../../database/retry';
import { connectionsOf, groupsOf } from '../connections';
import { type PosClosingRow, POS_CLOSINGS_TABLE } from '../tables';
import { compareAgain } from '../closings';

/** Compares the closing of an event with the records as they are now. */
export const compareClosingAgain = (strapi: Core.Strapi, eventId: number): Promise<void> =>
  withTransientRetry(async () => {
    const executor = await currentExecutor(strapi);
    const closing = (await table(strapi, executor, POS_CLOSINGS_TABLE)
      .where({ event_id: eventId })
      .first()) as PosClosingRow | undefined;
    if (!closing) return;
    const ids = [Number(closing.connection_id)];
    const groups = await groupsOf(strapi, executor, ids);
    await inTransaction(strapi, async ({ trx }) => {
      const connections = await connectionsOf(strapi, trx, ids, groups, { lock: true });
      await compareAgain(strapi, trx, closing, connections);
    });
  });
