import type { Core } from '@strapi/strapi';
import { z } from '@strapi/utils';
import type { DeliveryFigure, DeliveryFigures } from '../../../shared/contracts/overview';
import { getClock } from '../database/clock';
import { fieldError, idText } from '../http/validation';
import { HOUR_MS, hourOf, isoTime } from '../runtime/text';
import { rollupsSince } from '../webhooks/figures/fill-rollups';
import { readHours, type Rollup } from '../webhooks/figures/rollups';
import { responseOf } from './response';

const DAY_MS = 24 * HOUR_MS;
/** As long as figures are kept. */
const LONGEST_MS = 31 * DAY_MS;

const time = z.iso
  .datetime({ offset: true, message: 'must be a time with its offset' })
  .transform((text) => Date.parse(text));

/** The query of `GET /switchboard/delivery-figures`; without times, the last 24 hours. */
export const figuresQuery = z.object({
  webhook: idText('a webhook').optional(),
  from: time.optional(),
  to: time.optional(),
});

export type FiguresQuery = z.infer<typeof figuresQuery>;

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
export const readFigures = async (
  strapi: Core.Strapi,
  { webhook, from, to }: FiguresQuery
): Promise<DeliveryFigures> => {
  const before = to ?? getClock(strapi).now();
  const since = from ?? before - DAY_MS;
  if (since >= before) throw fieldError('to', 'must be after from');
  if (before - since > LONGEST_MS) throw fieldError('from', 'may be 31 days before to at most');
  const step = stepOf(before - since);
  const stepMs = step * HOUR_MS;
  const start = Math.floor(hourOf(since) / stepMs) * stepMs;
  const hours = await readHours(strapi, { webhook, since: start, before });
  const bySpan = new Map<number, Rollup[]>();
  for (let at = start; at < before; at += stepMs) bySpan.set(at, []);
  for (const rollup of hours) {
    bySpan.get(Math.floor(rollup.hour / stepMs) * stepMs)?.push(rollup);
  }
  const reached = await rollupsSince(strapi);
  return {
    step_hours: step,
    spans: [...bySpan].map(([at, rollups]) => ({ from: isoTime(at), ...figureOf(rollups) })),
    total: figureOf(hours),
    complete: reached <= start,
  };
};
