import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { PurchasesService } from '../../../../shared/contracts/customers';
import { currentExecutor } from '../../database/connection';
import { readPage } from '../../http/pagination';
import { readCounted } from '../money/rollups';
import { type PosEventRow, POS_EVENTS_TABLE } from '../tables';
import { PURCHASES_TABLE } from './purchases-table';

type Row = Pick<PosEventRow, 'kind' | 'external_id' | 'occurred_at' | 'counted'>;

/** The service `pos-purchases`, which the CRM asks where the site has both. */
export const createPurchasesService = ({ strapi }: { strapi: Core.Strapi }): PurchasesService => {
  const schema = strapi.db.getSchemaName();
  const named = (name: string): string => (schema ? `${schema}.${name}` : name);
  return {
    async list(contact, page) {
      const executor = await currentExecutor(strapi);
      const query = (executor as Knex)(`${named(PURCHASES_TABLE)} as p`)
        .join(`${named(POS_EVENTS_TABLE)} as e`, 'e.id', 'p.event_id')
        .select('e.kind', 'e.external_id', 'e.occurred_at', 'e.counted')
        .where('p.contact_id', contact)
        .orderBy([
          { column: 'e.effective_at', order: 'desc' },
          { column: 'e.id', order: 'desc' },
        ]);
      const { rows, meta } = await readPage<Row>(executor, query, page);
      const data = rows.map(({ kind: stored, external_id, occurred_at, counted }) => {
        const kind = stored === 'refund' ? ('refund' as const) : ('sale' as const);
        const money =
          counted === null ? null : readCounted(counted, { kind, connection: 0, at: 0 });
        const { currency = null, amount = 0n } = money ?? {};
        return { kind, external_id, occurred_at, currency, total: Number(amount) };
      });
      return { data, meta };
    },
  };
};
