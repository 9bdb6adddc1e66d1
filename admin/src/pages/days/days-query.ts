import { useQueryParams } from '@strapi/strapi/admin';
import { SALES_GROUPS, type ShopDay } from '../../../../shared/contracts/pos';
import type { SalesFilter } from '../../services/sales';
import { dayAfter } from '../../utils/sales';
import type { TextKey } from '../../utils/text';

/** The report's address, parsed. */
export interface DaysQuery {
  from?: string;
  to?: string;
  group?: string;
  connection?: string;
  item?: string;
  page?: string;
  pageSize?: string;
}

/** Days back from today, and how many of them: what a shop asks for first. */
export const PRESETS = {
  today: [0, 1],
  yesterday: [-1, 1],
  week: [-6, 7],
  month: [-29, 30],
} as const;
export type Preset = keyof typeof PRESETS;
export const PRESET_NAMES = Object.keys(PRESETS) as Preset[];

export const rangeOf = (preset: Preset, today: string): { from: string; to: string } => {
  const [first, length] = PRESETS[preset];
  const from = dayAfter(today, first);
  return { from, to: dayAfter(from, length - 1) };
};

const DAY = /^\d{4}-\d{2}-\d{2}$/;
/** The most days that the server reports, docs/shop.md#sales. */
const MAX_DAYS = 1_100;

export const isDay = (text: string): boolean =>
  DAY.test(text) && !Number.isNaN(Date.parse(`${text}T00:00:00Z`)) && text >= '1900';

/** A day as the host's picker takes it: midnight where the reader is. */
export const pickerDate = (day: string): Date => new Date(`${day}T00:00:00`);

export const dayOf = (date: Date): string =>
  [date.getFullYear(), date.getMonth() + 1, date.getDate()]
    .map((part) => String(part).padStart(2, '0'))
    .join('-');

const idOf = (text: string | undefined): number | undefined =>
  text && /^[1-9]\d{0,8}$/.test(text) ? Number(text) : undefined;

/** The filter of an address; the last week if it has no days. */
export const filterOf = (query: DaysQuery, { today }: Pick<ShopDay, 'today'>): SalesFilter => {
  const usual = rangeOf('week', today);
  const group = SALES_GROUPS.find((one) => one === query.group) ?? 'day';
  return {
    from: query.from && isDay(query.from) ? query.from : usual.from,
    to: query.to && isDay(query.to) ? query.to : usual.to,
    group,
    connection: idOf(query.connection),
    item: idOf(query.item),
  };
};

/** Why there can be no report of such days. */
export const problemOf = ({ from, to }: Pick<SalesFilter, 'from' | 'to'>): TextKey | null => {
  if (from > to) return 'days.problem.order';
  return dayAfter(from, MAX_DAYS) <= to ? 'days.problem.length' : null;
};

type Changes = Partial<Record<'from' | 'to' | 'group' | 'connection' | 'item', string | undefined>>;

/** The address of the report, and how to ask for another one: from its first page again. */
export const useDaysQuery = (): [query: DaysQuery, change: (changes: Changes) => void] => {
  const [{ query }, setQuery] = useQueryParams<DaysQuery>();
  // Keys that are undefined are left out of the address.
  const change = (changes: Changes): void =>
    setQuery({ ...changes, page: undefined } as DaysQuery, 'push', true);
  return [query, change];
};
