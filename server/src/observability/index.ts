import { z } from '@strapi/utils';
import { adminPolicies } from '../access/admin-policies';
import type { Feature } from '../feature';
import type { ControllerFactory } from '../http/controller';
import { observeGauges } from './gauges';
import { expose } from './prometheus';

const controller: ControllerFactory = ({ strapi }) => ({
  async find(ctx) {
    const { type, text } = await expose(strapi);
    ctx.body = text;
    ctx.set('Content-Type', type);
    ctx.set('Cache-Control', 'no-store');
  },
});

const route = { method: 'GET', path: '/metrics', handler: 'metrics.find' } as const;

/** What monitoring systems ask for; docs/monitoring.md#metrics. The features say what there is. */
export const observability: Feature = {
  controllers: { metrics: controller },
  routes: {
    crm: [{ ...route, response: z.string() }],
    admin: [{ ...route, config: { policies: adminPolicies('metrics.read') } }],
  },
  bootstrap({ strapi }) {
    observeGauges(strapi);
  },
};
