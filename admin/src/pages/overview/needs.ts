import type { AdminAction } from '../../../../shared/contracts/permissions';
import type { Attention, WebhookHealth } from '../../../../shared/contracts/overview';
import type { SwitchedOff } from '../../components/disabled-reason';
import type { TextKey } from '../../utils/text';

/** A way to fix a problem: where it leads, under `/plugins/switchboard`. */
export interface Remedy {
  label: TextKey;
  to: string;
  /** Hidden from users without this permission. */
  asks?: AdminAction;
}

/** One sentence of "What needs me". */
export interface Need {
  id: string;
  /** The most harmful first. */
  tone: 'danger' | 'warning';
  text: TextKey;
  values: Record<string, string | number>;
  /** A cause of the server's, to be said in plain words. */
  cause?: string;
  /** Why the server switched something off, to be said likewise. */
  off?: SwitchedOff;
  /** An instant of the sentence; ISO 8601. */
  at?: string;
  remedies: Remedy[];
}

const see = (id: number, state: string): Remedy => ({
  label: 'needs.see',
  to: `deliveries?${new URLSearchParams({ webhook: String(id), state }).toString()}`,
});
const sendAgain = (id: number, state: string): Remedy => ({
  ...see(id, state),
  label: 'needs.sendAgain',
  asks: 'webhooks.update',
});
const open = (id: number, label: TextKey): Remedy => ({
  label,
  to: `webhooks/${id}`,
  asks: 'webhooks.update',
});

/** Keeps the remedies that the user is allowed; a link to look at the problem if there is none. */
export const allowed = (need: Need, can: (action: AdminAction) => boolean): Need => {
  const remedies = need.remedies.filter(({ asks }) => asks === undefined || can(asks));
  const [first] = need.remedies;
  const look = first && [{ label: 'needs.see' as const, to: first.to }];
  return { ...need, remedies: remedies.length > 0 ? remedies : (look ?? []) };
};

/** The problem of a webhook; null if it has none. */
const needOfWebhook = (webhook: WebhookHealth): Need | null => {
  const { webhook_id: id, name, health, failed, disabled_reason: reason, last } = webhook;
  const { state, failing, waiting } = health;
  const left = waiting + failing;
  const base = { id: `webhook-${id}`, values: { name, failing, waiting, left, failed } };
  if (state === 'off') {
    if (reason === null && left === 0) return null;
    // Nothing failed, and switching it on may send to receivers that are another site's.
    if (webhook.disabled_because?.code === 'other_site') {
      return {
        ...base,
        tone: 'warning',
        text: 'needs.webhook.elsewhere',
        remedies: [open(id, 'needs.open')],
      };
    }
    return {
      ...base,
      tone: reason === null ? 'warning' : 'danger',
      text: reason === null ? 'needs.webhook.off' : 'needs.webhook.switchedOff',
      remedies: [
        ...(left > 0 ? [see(id, 'waiting,failing')] : []),
        open(id, 'needs.testAndSwitchOn'),
      ],
    };
  }
  if (state === 'failing') {
    return {
      ...base,
      tone: 'danger',
      text: 'needs.webhook.failing',
      ...(health.failing_since && { at: health.failing_since }),
      ...(last?.error && { cause: last.error }),
      remedies: [
        see(id, 'failing,failed'),
        open(id, 'needs.test'),
        sendAgain(id, 'failing,failed'),
      ],
    };
  }
  if (state === 'paused') {
    return {
      ...base,
      tone: 'warning',
      text: 'needs.webhook.paused',
      ...(health.paused_until && { at: health.paused_until }),
      remedies: [see(id, 'waiting,failing')],
    };
  }
  if (failed > 0 || failing > 0) {
    return {
      ...base,
      tone: failed > 0 ? 'danger' : 'warning',
      text: failed > 0 ? 'needs.webhook.gaveUp' : 'needs.webhook.someFail',
      remedies: [
        see(id, failed > 0 ? 'failed' : 'failing'),
        ...(failed > 0 ? [sendAgain(id, 'failed')] : []),
      ],
    };
  }
  return null;
};

/** The problems of webhooks, in the order in which the server names them: the most urgent first. */
export const needsOfWebhooks = (webhooks: readonly WebhookHealth[]): Need[] =>
  webhooks.map(needOfWebhook).filter((need) => need !== null);

/** Queues on Redis that somebody paused: all is sent, but later, and not shared as it should be. */
export const needsOfQueues = (paused: readonly string[]): Need[] =>
  paused.map((name) => ({
    id: `queue-${name}`,
    tone: 'warning',
    text: 'needs.queue.paused',
    values: { name },
    remedies: [],
  }));

/** A problem with a number of things, if there are any. */
const counted = (
  id: string,
  n: number | undefined,
  need: Pick<Need, 'tone' | 'text' | 'remedies'>
): Need[] => (n ? [{ id, values: { n }, ...need }] : []);

const seeRecords = (search: string): Remedy => ({ label: 'needs.see', to: `records?${search}` });

/** The problems of tills, their records and imports; those first in which money or stock is wrong. */
export const needsOfTills = ({ imports, records, refused, tills }: Attention): Need[] => [
  ...counted('records-failed', records?.failed, {
    tone: 'danger',
    text: 'needs.records.failed',
    remedies: [seeRecords('state=failed')],
  }),
  ...counted('records-refused', refused ?? 0, {
    tone: 'danger',
    text: 'needs.records.refused',
    remedies: [seeRecords('tab=refused')],
  }),
  ...counted('records-needs-mapping', records?.needs_mapping, {
    tone: 'danger',
    text: 'needs.records.mapping',
    remedies: [
      seeRecords('state=needs_mapping'),
      { label: 'needs.map', to: 'unmapped', asks: 'mapping.manage' },
    ],
  }),
  ...counted('records-held', records?.held, {
    tone: 'warning',
    text: 'needs.records.held',
    remedies: [seeRecords('state=held')],
  }),
  ...counted('records-differ', records?.differs, {
    tone: 'warning',
    text: 'needs.records.differ',
    remedies: [seeRecords('state=differs')],
  }),
  ...(tills ?? []).map((till): Need => {
    const { id, name, silent_since: at, expected_every_minutes: n } = till;
    const remedies: Remedy[] = [{ label: 'needs.open', to: `tills/${id}` }];
    return at !== null
      ? {
          ...{ id: `silent-${id}`, tone: 'danger', text: 'needs.connection.silent', at, remedies },
          values: { name, n: n ?? 0 },
        }
      : {
          ...{ id: `connection-${id}`, tone: 'warning', text: 'needs.connection.off', remedies },
          values: { name },
          off: till,
        };
  }),
  ...imports.map(({ id, kind, failed: n, finished_at: at }): Need => {
    const remedies: Remedy[] = [{ label: 'needs.see', to: `import?import=${id}` }];
    const text = `needs.import.${kind}` as const;
    return { id: `import-${id}`, tone: 'warning', text, values: { n }, at, remedies };
  }),
];
