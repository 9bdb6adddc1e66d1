import { DELIVERY_STATES, DELIVERY_STATUSES } from '../../../shared/contracts/webhooks';
import { sectionsOf, stateOf } from '../../../server/src/webhooks/rules/delivery-state';

const DELIVERIES = DELIVERY_STATUSES.flatMap((status) =>
  [0, 1, 7].flatMap((tries) => [true, false].map((isTest) => ({ status, tries, isTest })))
);

describe('the state of a delivery', () => {
  it.each([
    [{ status: 'pending', tries: 0, isTest: false }, 'waiting'],
    [{ status: 'pending', tries: 1, isTest: false }, 'failing'],
    [{ status: 'failed', tries: 7, isTest: false }, 'failed'],
    [{ status: 'sent', tries: 2, isTest: false }, 'sent'],
    [{ status: 'failed', tries: 1, isTest: true }, 'test'],
  ] as const)('of %j is %s', (delivery, state) => {
    expect(stateOf(delivery)).toBe(state);
  });
});

describe('the sections of the log', () => {
  const isIn = (delivery: (typeof DELIVERIES)[number]) => (section: (typeof all)[number]) =>
    section.status === delivery.status && section.state === stateOf(delivery);
  const all = sectionsOf(undefined, undefined);

  it('have each delivery once', () => {
    for (const delivery of DELIVERIES) expect(all.filter(isIn(delivery))).toHaveLength(1);
  });

  it('of a status and a state have what is in both, and nothing else', () => {
    for (const status of [undefined, ...DELIVERY_STATUSES]) {
      for (const state of DELIVERY_STATES) {
        const sections = sectionsOf(status, [state]);
        for (const delivery of DELIVERIES) {
          const wanted =
            stateOf(delivery) === state && (status === undefined || delivery.status === status);
          expect([status, state, delivery, sections.some(isIn(delivery))]).toEqual([
            status,
            state,
            delivery,
            wanted,
          ]);
        }
      }
    }
  });
});
