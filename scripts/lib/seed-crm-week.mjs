import { WEEK } from './crm-week.mjs';

const DAY = 86_400_000;
const HOUR = 3_600_000;

/** Key that identifies a record of each kind, if an earlier start made it without a note. */
const KNOWN_BY = {
  tags: 'slug',
  contacts: 'email',
  deals: 'title',
  tasks: 'title',
  campaigns: 'title',
};
const knownBy = (kind) => KNOWN_BY[kind] ?? 'name';

/** How many whole hours before now a step of the week was. */
const hoursSince = ({ daysAgo, hour, hoursAgo }) => {
  if (hoursAgo !== undefined) return hoursAgo;
  const now = new Date();
  const at = new Date(now.getFullYear(), now.getMonth(), now.getDate() - daysAgo, hour);
  return Math.round((now.getTime() - at.getTime()) / HOUR);
};

const written = (ids, key, value) => {
  if (Array.isArray(value)) return value.map((one) => written(ids, key, one));
  if (typeof value === 'string' && value.startsWith('@')) return ids[value.slice(1)];
  if (value?.inDays === undefined) return value;
  const at = new Date(Date.now() + value.inDays * DAY).toISOString();
  return key.endsWith('_date') ? at.slice(0, 10) : at;
};

/** A record with the ids and the times that it names. */
const resolved = (ids, record) =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, written(ids, key, value)]));

const make = async (crm, ids, [kind, name, record]) => {
  if (ids[name]) return;
  const body = resolved(ids, record);
  const key = knownBy(kind);
  const { data } = await crm('GET', `/${kind}?per_page=100`);
  const found = data.find((one) => one[key] === body[key]);
  ids[name] = (found ?? (await crm('POST', `/${kind}`, body))).id;
};

const sendAgain = async (crm, webhookId) => {
  const route = `/webhooks/${webhookId}/deliveries?status=pending&per_page=100`;
  const { data } = await crm('GET', route);
  for (const { id } of data) await crm('POST', `/webhook-deliveries/${id}/retry`);
};

/**
 * Fills the CRM with a week of a shop and sends its events as they would have gone out, some of them
 * to a receiver that was down. Each step is done now, and its times are moved to where they belong
 * (`playground-history.mjs`); a start that ended on its way goes on with the step that it was at.
 * @param {{ crm: (method: string, route: string, body?: unknown) => Promise<any>, webhookId: number,
 *   history: ReturnType<typeof import('./playground-history.mjs').openHistory>,
 *   answerWith: (mode: 'ok' | 'fail') => Promise<unknown>,
 *   state: { done?: number, ids?: Record<string, string> }, keep: (state: object) => void }} where
 *   `crm` asks below `/api/fw-crm/v1`; `answerWith` is what the receiver is to do from now on
 */
export const seedCrmWeek = async ({ crm, webhookId, history, answerWith, state, keep }) => {
  const ids = { ...state.ids };
  for (const [index, step] of WEEK.entries()) {
    if (index < (state.done ?? 0)) continue;
    const since = Date.now();
    await answerWith(step.isDown ? 'fail' : 'ok');
    for (const one of step.make ?? []) await make(crm, ids, one);
    for (const [kind, name, changes] of step.change ?? []) {
      await crm('PATCH', `/${kind}/${ids[name]}`, resolved(ids, changes));
    }
    if (step.sendsAgain) await sendAgain(crm, webhookId);
    await history.settled();
    history.moveBack(since, hoursSince(step) * HOUR);
    if (step.givesUp) history.giveUp(webhookId);
    keep({ done: index + 1, ids: { ...ids } });
  }
  await answerWith('ok');
};
