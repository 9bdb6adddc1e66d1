import { adminApi } from '@strapi/strapi/admin';
import type { Page } from '../../../shared/contracts/webhooks';

export const api = adminApi.enhanceEndpoints({
  addTagTypes: [
    'SwitchboardWebhook',
    'SwitchboardWebhookList',
    'SwitchboardDelivery',
    'SwitchboardRecovery',
    'SwitchboardHealth',
    'SwitchboardModules',
    'SwitchboardPasswords',
    'SwitchboardConnection',
    'SwitchboardEvent',
    'SwitchboardStock',
    // Tags of the content manager.
    'Document',
    'Relations',
  ],
});

/** The largest page that the server gives. */
const PAGE_MAX = 100;

/** `?a=1&b=2`, without what is empty. */
export const queryString = (
  params: Readonly<Record<string, string | number | undefined>>
): string => {
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text === '' ? '' : `?${text}`;
};

interface Answer<E> {
  data?: unknown;
  error?: E;
}

/**
 * A list whole, page after page. Pages are left when one is not full: `page_count` stops counting
 * at 10,000 rows.
 */
export const everyPage = async <Row, E>(
  baseQuery: (query: string) => Answer<E> | PromiseLike<Answer<E>>,
  path: string,
  filter: Record<string, string | undefined> = {}
): Promise<{ data: Row[] } | { error: E }> => {
  const all: Row[] = [];
  for (let page = 1; ; page += 1) {
    const answer = await baseQuery(
      `${path}${queryString({ ...filter, page, per_page: PAGE_MAX })}`
    );
    if (answer.error) return { error: answer.error };
    const { data } = answer.data as Page<Row>;
    all.push(...data);
    if (data.length < PAGE_MAX) return { data: all };
  }
};

/** An answer of the admin's routes that is one object. */
export interface One<T> {
  data: T;
}
