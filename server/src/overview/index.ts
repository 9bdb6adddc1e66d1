import { z } from '@strapi/utils';
import type {
  DeliveryFigure,
  DeliveryFigures,
  HealthReport,
} from '../../../shared/contracts/overview';
import { adminApi } from '../access/admin-actions';
import { getEntryTypes } from '../entries/types';
import type { Feature } from '../feature';
import { endpoint } from '../http/endpoint';
import { fieldError, idText } from '../http/validation';
import { requireModule } from '../modules';
import { DAY_MS, HOUR_MS, hourOf, isoTime } from '../runtime/text';
import { readHours, type Rollup } from '../webhooks/figures/rollups';
import { readAttention } from './attention';
import { readHealth, responseOf } from './health';
import { mappedTypes, recordTypes } from './mapped-types';
import type { App, Slot } from '../app';

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

/** Attempts by outcome and response times, of one webhook or all; partial hours count whole. @throws ValidationError */
const readFigures = async (
  app: App,
  { webhook, from, to }: z.infer<typeof figuresQuery>
): Promise<DeliveryFigures> => {
  const before = to ?? app.clock.now();
  const since = from ?? before - DAY_MS;
  if (since >= before) throw fieldError('to', 'must be after from');
  if (before - since > LONGEST_MS) throw fieldError('from', 'may be 31 days before to at most');
  const step = stepOf(before - since);
  const stepMs = step * HOUR_MS;
  const start = Math.floor(hourOf(since) / stepMs) * stepMs;
  const webhooks = webhook === undefined ? undefined : [webhook];
  const hours = await readHours(app, { webhooks, since: start, before });
  const bySpan = new Map<number, Rollup[]>();
  for (let at = start; at < before; at += stepMs) bySpan.set(at, []);
  for (const rollup of hours) {
    bySpan.get(Math.floor(rollup.hour / stepMs) * stepMs)?.push(rollup);
  }
  return {
    step_hours: step,
    spans: [...bySpan].map(([at, rollups]) => ({ from: isoTime(at), ...figureOf(rollups) })),
    total: figureOf(hours),
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

const latest = (): Slot<{ at: number; report: Promise<HealthReport> }> => ({});

const healthQuery = z.object({ webhook: idText('a webhook').optional() });

const latestHealth = (app: App, webhook?: number): Promise<HealthReport> => {
  if (webhook !== undefined) return readHealth(app, app.clock.now(), webhook);
  const at = Date.now();
  const slot = app.part(latest);
  if (!slot.value || at - slot.value.at > SHARED_FOR_MS) {
    slot.value = { at, report: readHealth(app, app.clock.now()) };
    slot.value.report.catch(() => delete slot.value);
  }
  return slot.value.report;
};

const WEBHOOKS = { may: 'webhooks.read', policies: [requireModule('webhooks')] } as const;

const api = adminApi({
  overview: {
    health: endpoint(
      'GET /webhooks-health',
      { ...WEBHOOKS, query: healthQuery },
      ({ app, query }) => latestHealth(app, query().webhook)
    ),
    figures: endpoint(
      'GET /delivery-figures',
      { ...WEBHOOKS, query: figuresQuery },
      ({ app, query }) => readFigures(app, query())
    ),
    // The content depends on the user's permissions.
    attention: endpoint('GET /attention', {}, ({ app, ctx }) => readAttention(app, ctx)),
    // Only names of types; panels next to entries ask, for readers of webhooks or of contacts.
    recordTypes: endpoint('GET /record-types', {}, ({ app }) =>
      recordTypes(app.options, collections(app))
    ),
    mappedTypes: endpoint('GET /mapped-types', { may: 'modules.update' }, ({ app }) =>
      mappedTypes(app.options)
    ),
  },
});

/** The admin panel's overview; it only reads, and only little, however long the log is. */
export const overview: Feature = { controllers: api.controllers, routes: { admin: api.routes } };
