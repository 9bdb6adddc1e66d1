import type { Site } from '../support/site';

export const LOG = '/api/fw-crm/v1/webhook-deliveries';

export const EVENTS = ['contact.created', 'deal.won', 'loyalty.earned', 'task.created'];
export const CAUSES = ['refused', 'http_500', 'timeout'];

/** Ids are the same text for records of two types. */
export const SUBJECTS = [
  { type: 'contact', id: 'c1', label: 'Alan Turing' },
  { type: 'deal', id: 'c1', label: 'Turbines' },
  { type: 'contact', id: 'c2', label: 'Émilie du Châtelet' },
  { type: 'task', id: 't1', label: 'Call back' },
];

/** A row of the log as a test makes it; `id` once it is inserted. */
export interface LoggedRow {
  id?: number;
  webhook_id: number;
  event: string;
  status: 'pending' | 'sent' | 'failed';
  tries: number;
  is_test: boolean;
  error: string | null;
  created_at: number;
  subject_type: string | null;
  subject_id: string | null;
  subject_label: string | null;
}

/** Inserts rows, of which nothing is due. @returns them with their ids. */
export const insertLogged = async (
  site: Site,
  rows: readonly LoggedRow[]
): Promise<(LoggedRow & { id: number })[]> => {
  const ids: number[] = await site.evaluate(async ({ strapi, require }, given) => {
    const { randomUUID } = require('node:crypto');
    const made: number[] = [];
    for (const row of given as object[]) {
      const documentId = randomUUID();
      const table = () => strapi.db.connection('switchboard_deliveries');
      await table().insert({
        document_id: documentId,
        url: 'http://127.0.0.1/',
        body: '{}',
        ...row,
      });
      const { id, webhook_id, event, status, tries, is_test, error, created_at } = await table()
        .where({ document_id: documentId })
        .first();
      made.push(id);
      if (status === 'sent' && !is_test) continue;
      const ended = status !== 'pending';
      const ofTest = { pending: 3, failed: 4, sent: 5 }[status as 'pending'];
      const section = is_test ? ofTest : ended ? 2 : Math.min(1, tries);
      await strapi.db.connection('switchboard_delivery_queue').insert({
        ...{ id, group_id: webhook_id, state: ended ? 3 : 2, due_at: created_at },
        ...{ section, error, event, created_at },
      });
    }
    return made;
  }, rows as unknown[]);
  return rows.map((row, index) => ({ ...row, id: Number(ids[index]) }));
};

/** The order of the log: by time, then by id. */
export const newestFirst = <T extends LoggedRow>(rows: readonly T[]): T[] =>
  [...rows].sort((a, b) => b.created_at - a.created_at || (b.id ?? 0) - (a.id ?? 0));

/** A query string; a list is the same key more than once. */
export const queryOf = (query: Record<string, unknown>): string => {
  const parts = Object.entries(query).flatMap(([key, value]) =>
    [value].flat().map((one) => `${key}=${encodeURIComponent(String(one))}`)
  );
  return parts.length > 0 ? `?${parts.join('&')}` : '';
};
