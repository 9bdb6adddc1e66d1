import type { AdminAction } from '../../../../shared/contracts/permissions';
import type { WebhookHealth } from '../../../../shared/contracts/overview';
import type { Connection } from '../../../../shared/contracts/pos';
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

/** The problem of a webhook and its harm; null if it has none. */
const needOfWebhook = (webhook: WebhookHealth): (Need & { harm: number }) | null => {
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
        harm: 2,
        tone: 'warning',
        text: 'needs.webhook.elsewhere',
        remedies: [open(id, 'needs.open')],
      };
    }
    return {
      ...base,
      harm: reason === null ? 2 : 6,
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
      harm: 5,
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
      harm: 1,
      tone: 'warning',
      text: 'needs.webhook.paused',
      ...(health.paused_until && { at: health.paused_until }),
      remedies: [see(id, 'waiting,failing')],
    };
  }
  if (failed > 0 || failing > 0) {
    return {
      ...base,
      harm: failed > 0 ? 4 : 3,
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

/** The webhooks that need somebody: the most harmful first, then those with more deliveries at stake. */
export const needsOfWebhooks = (webhooks: readonly WebhookHealth[]): Need[] =>
  webhooks
    .map(needOfWebhook)
    .filter((need) => need !== null)
    .sort(
      (a, b) =>
        b.harm - a.harm ||
        Number(b.values.left) +
          Number(b.values.failed) -
          Number(a.values.left) -
          Number(a.values.failed)
    )
    .map(({ harm: _harm, ...need }) => need);

/** Queues on Redis that somebody paused: all is sent, but later, and not shared as it should be. */
export const needsOfQueues = (paused: readonly string[]): Need[] =>
  paused.map((name) => ({
    id: `queue-${name}`,
    tone: 'warning',
    text: 'needs.queue.paused',
    values: { name },
    remedies: [],
  }));

/** Records that wait for somebody, by what they wait for. */
export interface RecordCounts {
  needs_mapping: number;
  failed: number;
}

export const needsOfTills = (
  connections: readonly Pick<
    Connection,
    | 'id'
    | 'name'
    | 'active'
    | 'disabled_reason'
    | 'disabled_because'
    | 'revoked_at'
    | 'silent_since'
    | 'expected_every_minutes'
  >[],
  counts: RecordCounts
): Need[] => [
  ...(counts.failed > 0
    ? [
        {
          id: 'records-failed',
          tone: 'danger' as const,
          text: 'needs.records.failed' as const,
          values: { n: counts.failed },
          remedies: [{ label: 'needs.see' as const, to: 'events?state=failed' }],
        },
      ]
    : []),
  ...(counts.needs_mapping > 0
    ? [
        {
          id: 'records-needs-mapping',
          tone: 'danger' as const,
          text: 'needs.records.mapping' as const,
          values: { n: counts.needs_mapping },
          remedies: [
            { label: 'needs.see' as const, to: 'events?state=needs_mapping' },
            { label: 'needs.map' as const, to: 'mapping', asks: 'mapping.manage' as const },
          ],
        },
      ]
    : []),
  ...connections.flatMap(({ id, name, silent_since: at, expected_every_minutes: n }) =>
    at === null || n === null
      ? []
      : [
          {
            id: `silent-${id}`,
            tone: 'danger' as const,
            text: 'needs.connection.silent' as const,
            values: { name, n },
            at,
            remedies: [{ label: 'needs.open' as const, to: `connections/${id}` }],
          },
        ]
  ),
  ...connections
    .filter(({ active, disabled_reason: why, revoked_at: gone }) => !active && why && gone === null)
    .map(({ id, name, disabled_reason, disabled_because }) => ({
      id: `connection-${id}`,
      tone: 'warning' as const,
      text: 'needs.connection.off' as const,
      values: { name },
      off: { disabled_reason, disabled_because },
      remedies: [{ label: 'needs.open' as const, to: `connections/${id}` }],
    })),
];
