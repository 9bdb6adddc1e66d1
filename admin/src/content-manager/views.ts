import type { TextKey } from '../utils/text';

export type ViewedKind = 'contact' | 'company' | 'deal' | 'task';

/** A condition as the Content Manager writes it into the address: `trashed_at.$null` is `true`. */
type Condition = readonly [path: string, value: string];

/** A way to look at a list of the plugin's own records. */
export interface View {
  label: TextKey;
  conditions: readonly Condition[];
  sort?: string;
}

interface Reader {
  now: Date;
  /** The id of the user; views of one's own records need it. */
  userId?: number | string;
}

const OUTSIDE: Condition = ['trashed_at.$null', 'true'];
const BIN: View = { label: 'views.bin', conditions: [['trashed_at.$notNull', 'true']] };

/** Midnight in the reader's time zone, some days from now. */
const midnight = (now: Date, days: number): string =>
  new Date(now.getFullYear(), now.getMonth(), now.getDate() + days).toISOString();

const tasks = ({ now, userId }: Reader): View[] => {
  const open = (label: TextKey, ...more: Condition[]): View => ({
    label,
    conditions: [OUTSIDE, ['completed_at.$null', 'true'], ...more],
    sort: 'due_at:ASC',
  });
  return [
    open('views.open'),
    open('views.today', ['due_at.$gte', midnight(now, 0)], ['due_at.$lt', midnight(now, 1)]),
    open('views.overdue', ['due_at.$lt', now.toISOString()]),
    ...(userId === undefined ? [] : [open('views.mine', ['owner.id.$eq', String(userId)])]),
    BIN,
  ];
};

/** The views of a list. The first one is what its links in the menu lead to. */
export const viewsOf = (kind: ViewedKind, reader: Reader): View[] =>
  kind === 'task' ? tasks(reader) : [{ label: 'views.all', conditions: [OUTSIDE] }, BIN];

/** The address's query for a view, with what else the query `from` says. */
export const searchOf = ({ conditions, sort }: View, from: string): string => {
  const others = [...new URLSearchParams(from)].filter(([key]) => !key.startsWith('filters['));
  const params = new URLSearchParams(others);
  params.set('page', '1');
  if (sort) params.set('sort', sort);
  for (const [at, [path, value]] of conditions.entries()) {
    const keys = path
      .split('.')
      .map((key) => `[${key}]`)
      .join('');
    params.set(`filters[$and][${at}]${keys}`, value);
  }
  return `?${params.toString()}`;
};

const flat = (condition: unknown): string => {
  if (typeof condition !== 'object' || condition === null) return '';
  const [[key, value] = ['', null]] = Object.entries(condition);
  const rest = flat(value);
  return rest === '' ? key : `${key}.${rest}`;
};

/**
 * The view that an address shows, by the shape of its conditions: times in it may be of another day, because the
 * Content Manager remembers its filters.
 */
export const shownView = (views: readonly View[], conditions: readonly unknown[]) => {
  const shape = conditions.map(flat).join();
  return views.find((view) => view.conditions.map(([path]) => path).join() === shape);
};

const OWN = 'plugin::switchboard.';

/** The kind of a list of the plugin's own; a type of the site's has other fields. */
export const viewedKind = (uid: string): ViewedKind | undefined =>
  (['contact', 'company', 'deal', 'task'] as const).find((kind) => uid === `${OWN}${kind}`);
