import { Typography, type TypographyProps } from '@strapi/design-system';
import { useSyncExternalStore } from 'react';
import { useIntl } from 'react-intl';

const UNITS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
];

/** The largest unit that fits, and how many of it lie between two moments. */
export const relativeParts = (
  at: number,
  now: number
): { value: number; unit: Intl.RelativeTimeFormatUnit } => {
  const distance = at - now;
  const [unit, size] = UNITS.find(([, length]) => Math.abs(distance) >= length) ?? ['second', 1000];
  return { value: Math.trunc(distance / size), unit };
};

const TICK_MS = 1000;

/** Components that show the time now. One timer serves all of them: a table has many times. */
const listeners = new Set<() => void>();
let ticking: ReturnType<typeof setInterval> | undefined;
let lastTick = 0;

const tick = (): void => {
  lastTick = Date.now();
  for (const listener of listeners) listener();
};

const listen = (listener: () => void): (() => void) => {
  if (listeners.size === 0) {
    lastTick = Date.now();
    ticking = setInterval(tick, TICK_MS);
  }
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) clearInterval(ticking);
  };
};

const wholeSecond = (): number => Math.floor(Date.now() / TICK_MS) * TICK_MS;

// Before somebody listens nothing ticks, and what is drawn then must not be of long ago.
const currentSecond = (): number => (listeners.size === 0 ? wholeSecond() : lastTick);

/** The current time, again every second: relative times grow old while they are looked at. */
export const useNow = (): number => useSyncExternalStore(listen, currentSecond);

/** A judgement of the current time, every second; draws again only if it changes. */
export const useIsNow = (judge: (now: number) => boolean): boolean =>
  useSyncExternalStore(listen, () => judge(currentSecond()));

export const useAbsoluteTime = () => {
  const { formatDate } = useIntl();
  return (iso: string): string => formatDate(iso, { dateStyle: 'medium', timeStyle: 'medium' });
};

interface TimeProps extends Omit<TypographyProps<'span'>, 'children'> {
  /** ISO 8601. */
  at: string;
  /** Shows the absolute time next to the relative one instead of in its title. */
  both?: boolean;
}

export const Time = ({ at, both, ...props }: TimeProps) => {
  const { formatRelativeTime } = useIntl();
  const absolute = useAbsoluteTime()(at);
  const now = useNow();
  const { value, unit } = relativeParts(Date.parse(at), now);
  const relative = formatRelativeTime(value, unit, { numeric: 'auto' });
  return (
    <Typography {...props} tag="span" title={absolute}>
      <time dateTime={at}>{both ? `${relative} (${absolute})` : relative}</time>
    </Typography>
  );
};
