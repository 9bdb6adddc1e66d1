import type { Core } from '@strapi/strapi';
import { z } from '@strapi/utils';
import type { Context } from 'koa';
import type {
  DeliveryFigure,
  DeliveryFigures,
  HealthReport,
} from '../../../shared/contracts/overview';
import { adminPolicies, adminRoute } from '../access/admin-actions';
import { getEntryTypes } from '../entries/types';
import type { Feature, RouteConfig } from '../feature';
import { queryOf } from '../http/guarded-route';
import { fieldError, idText, parseInput } from '../http/validation';
import { requireModule } from '../modules';
import { HOUR_MS, hourOf, isoTime } from '../runtime/text';
import { readHours, type Rollup } from '../webhooks/figures/rollups';
import { readHealth, responseOf } from './health';
import { mappedTypes, recordTypes } from './mapped-types';
import { type App, appOf } from '../app';

const DAY_MS = 24 * HOUR_MS;
/** As long as figures are kept. */
const LONGEST_MS = 31 * DAY_MS;

const time = z.iso
  .datetime({ offset: true, message: 'must be a time with its offset' })
  .transform((text) => Date.parse(text));

/** The query of `GET /switchboard/delivery-figures`; without times, the last 24 hours. */
const figuresQuery = z.object({
  webhook: idText('a webhook').optional(),
  from: time.optional(),
  to: time.optional(),
});

type FiguresQuery = z.infer<typeof figuresQuery>;

/** Few enough spans to be seen side by side: hours of two days, quarters of a day of eight, else days. */
const stepOf = (length: number): number => {
  if (length <= 2 * DAY_MS) return 1;
  return length <= 8 * DAY_MS ? 6 : 24;
};

const figureOf = (rollups: readonly Rollup[]): Omit<DeliveryFigure, 'from'> => ({
  sent: rollups.reduce((sum, { attempts }) => sum + attempts.sent, 0),
  failed: rollups.reduce((sum, { attempts }) => sum + attempts.failed, 0),
  response: responseOf(rollups),
});

/**
 * Attempts by outcome and their response times, of one webhook or all, from hourly rollups: an hour
 * that `from` or `to` lies in counts whole.
 * @throws ValidationError (400) that names `to` or `from`
 */
const readFigures = async (
  app: App,
  { webhook, from, to }: FiguresQuery
): Promise<DeliveryFigures> => {
  const before = to ?? app.clock.now();
  const since = from ?? before - DAY_MS;
  if (since >= before) throw fieldError('to', 'must be after from');
  if (before - since > LONGEST_MS) throw fieldError('from', 'may be 31 days before to at most');
  const step = stepOf(before - since);
  const stepMs = step * HOUR_MS;
  const start = Math.floor(hourOf(since) / stepMs) * stepMs;
  const hours = await readHours(app, { webhook, since: start, before });
  const bySpan = new Map<number, Rollup[]>();
  for (let at = start; at < before; at += stepMs) bySpan.set(at, []);
  for (const rollup of hours) {
    bySpan.get(Math.floor(rollup.hour / stepMs) * stepMs)?.push(rollup);
  }
  return {
    step_hours: step,
    spans: [...bySpan].map(([at, rollups]) => ({ from: isoTime(at), ...figureOf(rollups) })),
    total: figureOf(hours),
    // Every attempt was counted when it was recorded.
    complete: true,
  };
};

/** Several screens and widgets ask at once; they may share an answer for this long, in milliseconds. */
const SHARED_FOR_MS = 2000;

/** Types that the content manager lists: a single type has an address of another kind. */
const collections = (app: App) =>
  [...getEntryTypes(app).values()]
    .map(({ uid }) => uid)
    .filter((uid) => {
      const type = app.strapi.contentTypes[uid as keyof typeof app.strapi.contentTypes];
      return uid.startsWith('api::') && type?.kind === 'collectionType';
    });

const controller = ({ strapi }: { strapi: Core.Strapi }) => {
  const app = appOf(strapi);
  let latest: { at: number; report: Promise<HealthReport> } | undefined;
  return {
    async health(ctx: Context) {
      const at = Date.now();
      if (!latest || at - latest.at > SHARED_FOR_MS) {
        latest = { at, report: readHealth(app, app.clock.now()) };
        latest.report.catch(() => {
          latest = undefined;
        });
      }
      ctx.body = { data: await latest.report };
    },
    async figures(ctx: Context) {
      ctx.body = { data: await readFigures(app, parseInput(figuresQuery, ctx.query)) };
    },
    async recordTypes(ctx: Context) {
      ctx.body = { data: recordTypes(app.options, collections(app)) };
    },
    async mappedTypes(ctx: Context) {
      ctx.body = { data: mappedTypes(app.options) };
    },
  };
};

const ofWebhooks = (
  path: string,
  handler: string,
  request?: RouteConfig['request']
): RouteConfig => ({
  ...{ method: 'GET', path, handler, request },
  config: { policies: [...adminPolicies('webhooks.read'), requireModule('webhooks')] },
});

/** The admin panel's overview; it only reads, and only little, however long the log is. */
export const overview: Feature = {
  controllers: { overview: controller },
  routes: {
    admin: [
      ofWebhooks('/webhooks-health', 'overview.health'),
      ofWebhooks('/delivery-figures', 'overview.figures', queryOf(figuresQuery)),
      {
        method: 'GET',
        path: '/record-types',
        handler: 'overview.recordTypes',
        // Only names of types; panels next to entries ask, for readers of webhooks or of contacts.
        config: { policies: ['admin::isAuthenticatedAdmin'] },
      },
      adminRoute('GET', '/mapped-types', 'overview.mappedTypes', 'modules.update'),
    ],
  },
};
