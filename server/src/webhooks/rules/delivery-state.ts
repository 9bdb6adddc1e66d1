import {
  DELIVERY_STATUSES,
  type DeliveryState,
  type DeliveryStatus,
} from '../../../../shared/contracts/webhooks';

/** What has become of a delivery; docs/contract-webhooks.md#deliveries. */
export const stateOf = (delivery: {
  status: DeliveryStatus;
  tries: number;
  isTest: boolean;
}): DeliveryState => {
  if (delivery.isTest) return 'test';
  if (delivery.status !== 'pending') return delivery.status;
  return delivery.tries > 0 ? 'failing' : 'waiting';
};

/** Under what a delivery in the queue is found, as its column has it. */
export const SECTIONS = {
  ...{ waiting: 0, failing: 1, failed: 2 },
  // Of tests; and one that was sent, and is sent again by hand.
  ...{ test: 3, failedTest: 4, sentTest: 5, sent: 6 },
} as const;

export const sectionOf = (delivery: Parameters<typeof stateOf>[0]): number => {
  const state = stateOf(delivery);
  if (state !== 'test') return SECTIONS[state];
  if (delivery.status === 'pending') return SECTIONS.test;
  return delivery.status === 'failed' ? SECTIONS.failedTest : SECTIONS.sentTest;
};

/** Deliveries of one status, either tests or none. */
export interface LogSection {
  status: DeliveryStatus;
  isTest: boolean;
  /** Of pending ones: only those that were tried, or only those that were not. */
  tried?: boolean;
}

const isIn = ({ status, isTest }: LogSection, state: DeliveryState): boolean => {
  if (isTest || state === 'test') return isTest && state === 'test';
  return status === 'pending' ? state === 'waiting' || state === 'failing' : status === state;
};

/**
 * The sections in which the deliveries of a status and of some states are.
 * @returns none where no delivery can be in both
 */
export const sectionsOf = (
  status: DeliveryStatus | undefined,
  states: readonly DeliveryState[] | undefined
): LogSection[] => {
  const all = DELIVERY_STATUSES.flatMap((one) => [
    { status: one, isTest: false },
    { status: one, isTest: true },
  ]).filter((section) => status === undefined || section.status === status);
  if (!states) return all;
  return states.flatMap((state) =>
    all
      .filter((section) => isIn(section, state))
      .map((section) =>
        state === 'waiting' || state === 'failing'
          ? { ...section, tried: state === 'failing' }
          : section
      )
  );
};
