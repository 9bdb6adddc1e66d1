import type { ExplanationPoint } from '../../../../shared/contracts/stock';

/** The positions of a level's line; no drawing, so that it can be tested. */

export const WIDTH = 720;
export const HEIGHT = 200;
const LEFT = 48;
const RIGHT = 12;
const TOP = 12;
const BOTTOM = 24;

export interface ChartScale {
  left: number;
  right: number;
  bottom: number;
  /** Quantities with a line across. */
  ticks: number[];
  xOf(epochMs: number): number;
  yOf(quantity: number): number;
  /** The line: level until the next point, then up or down; as the `d` of a path. */
  line: string;
}

/** A step of 1, 2 or 5 times a power of ten, with at most five of them over the span. */
const stepOf = (span: number): number => {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, span / 4)));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => span / step <= 4) ?? span;
};

/**
 * @param now  epoch ms: the line goes on until then
 */
export const scaleOf = (series: readonly ExplanationPoint[], now: number): ChartScale => {
  const quantities = series.map(({ quantity }) => quantity);
  const times = series.map(({ at }) => Date.parse(at));
  const lowest = Math.min(0, ...quantities);
  const highest = Math.max(lowest + 1, 0, ...quantities);
  const step = stepOf(highest - lowest);
  const from = Math.floor(lowest / step) * step;
  const to = Math.ceil(highest / step) * step;
  const ticks = Array.from(
    { length: Math.round((to - from) / step) + 1 },
    (_one, n) => from + n * step
  );
  const begin = times[0] ?? now;
  const end = Math.max(now, begin + 1, ...times);
  const right = WIDTH - RIGHT;
  const bottom = HEIGHT - BOTTOM;
  const xOf = (at: number): number => LEFT + ((at - begin) / (end - begin)) * (right - LEFT);
  const yOf = (quantity: number): number =>
    bottom - ((quantity - from) / (to - from)) * (bottom - TOP);
  const round = (value: number): number => Math.round(value * 10) / 10;
  const steps = series.map(({ quantity }, index) => {
    const x = round(xOf(times[index] ?? begin));
    const y = round(yOf(quantity));
    return index === 0 ? `M${x} ${y}` : `H${x} V${y}`;
  });
  const line = series.length === 0 ? '' : `${steps.join(' ')} H${round(xOf(end))}`;
  return { left: LEFT, right, bottom, ticks, xOf, yOf, line };
};
