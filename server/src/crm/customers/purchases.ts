import type { Core } from '@strapi/strapi';
import { z } from '@strapi/utils';
import type { PurchasesService } from '../../../../shared/contracts/customers';
import { adminPolicies } from '../../access/admin-policies';
import type { RouteConfig } from '../../feature';
import { queryOf } from '../../http/guarded-route';
import type { ControllerFactory } from '../../http/controller';
import { pageQuery, paginationMeta } from '../../http/pagination';
import { parseInput } from '../../http/validation';
import { pageOf } from '../../webhooks/managing/outputs';
import { crmRecords } from '../resources/crm-records';

const query = z.object(pageQuery);

const purchase = z.object({
  kind: z.enum(['sale', 'refund']),
  external_id: z.string(),
  occurred_at: z.string(),
  currency: z.string().nullable(),
  total: z.number().int(),
});

/** A site without tills has no such service. */
const purchasesOf = (strapi: Core.Strapi): PurchasesService | undefined =>
  strapi.service('plugin::switchboard.pos-purchases') as unknown as PurchasesService | undefined;

export const contactPurchases: ControllerFactory = ({ strapi }) => ({
  async find(ctx) {
    const page = parseInput(query, ctx.query);
    const { id } = await crmRecords(strapi, 'contact').get(String(ctx.params.id));
    ctx.body = (await purchasesOf(strapi)?.list(id, page)) ?? {
      data: [],
      meta: paginationMeta(page, 0),
    };
  },
});

/** `/api/fw-crm/v1/contacts/:id/purchases`; docs/tills.md#customers. */
export const purchaseRoutes: RouteConfig[] = [
  {
    method: 'GET',
    path: '/contacts/:id/purchases',
    handler: 'contact-purchases.find',
    request: { params: { id: z.string() }, query: query.shape },
    response: pageOf(purchase),
    config: {},
  },
];

export const adminPurchaseRoutes: RouteConfig[] = [
  {
    method: 'GET',
    path: '/contacts/:id/purchases',
    handler: 'contact-purchases.find',
    request: queryOf(query),
    config: { policies: adminPolicies('crm.read') },
  },
];
