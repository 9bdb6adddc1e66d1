import type { Core } from '@strapi/strapi';
import type { Context } from 'koa';
import type { HealthReport } from '../../../shared/contracts/overview';
import { adminPolicies } from '../access/admin-policies';
import { getOptions } from '../config';
import { getClock } from '../database/clock';
import { requireModule } from '../modules';
import type { Feature } from '../feature';
import { queryOf } from '../http/guarded-route';
import { parseInput } from '../http/validation';
import { figuresQuery, readFigures } from './figures';
import { readHealth } from './health';
import { getEntryTypes } from '../entries/types';
import { mappedTypes, recordTypes } from './mapped-types';

/** Several screens and widgets ask at once; they may share an answer for this long, in milliseconds. */
const SHARED_FOR_MS = 2000;

/** Those that the content manager lists: a single type has an address of another kind. */
const collections = (strapi: Core.Strapi) =>
  [...getEntryTypes(strapi).values()]
    .map(({ uid }) => uid)
    .filter((uid) => {
      const type = strapi.contentTypes[uid as keyof typeof strapi.contentTypes];
      return uid.startsWith('api::') && type?.kind === 'collectionType';
    });

const controller = ({ strapi }: { strapi: Core.Strapi }) => {
  let latest: { at: number; report: Promise<HealthReport> } | undefined;
  return {
    async health(ctx: Context) {
      const at = Date.now();
      if (!latest || at - latest.at > SHARED_FOR_MS) {
        latest = { at, report: readHealth(strapi, getClock(strapi).now()) };
        latest.report.catch(() => {
          latest = undefined;
        });
      }
      ctx.body = { data: await latest.report };
    },
    async figures(ctx: Context) {
      ctx.body = { data: await readFigures(strapi, parseInput(figuresQuery, ctx.query)) };
    },
    async recordTypes(ctx: Context) {
      ctx.body = { data: recordTypes(getOptions(strapi), collections(strapi)) };
    },
    async mappedTypes(ctx: Context) {
      ctx.body = { data: mappedTypes(getOptions(strapi)) };
    },
  };
};

/** What the admin panel shows at a glance; it only reads, and only little, however long the log is. */
export const overview: Feature = {
  controllers: { overview: controller },
  routes: {
    admin: [
      {
        method: 'GET',
        path: '/webhooks-health',
        handler: 'overview.health',
        config: { policies: [...adminPolicies('webhooks.read'), requireModule('webhooks')] },
      },
      {
        method: 'GET',
        path: '/delivery-figures',
        handler: 'overview.figures',
        request: queryOf(figuresQuery),
        config: { policies: [...adminPolicies('webhooks.read'), requireModule('webhooks')] },
      },
      {
        method: 'GET',
        path: '/record-types',
        handler: 'overview.recordTypes',
        // Names of types alone; panels beside entries ask, for readers of webhooks or of contacts.
        config: { policies: ['admin::isAuthenticatedAdmin'] },
      },
      {
        method: 'GET',
        path: '/mapped-types',
        handler: 'overview.mappedTypes',
        config: { policies: adminPolicies('modules.update') },
      },
    ],
  },
};
