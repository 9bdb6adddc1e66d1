import fc from 'fast-check';

/** A small world of records: what tills may send about a few items in two locations. */

export interface SaleInput {
  kind: 'sale';
  connection: number;
  externalId: string;
  time: number;
  location: number;
  lines: { item: number; quantity: number }[];
}
export interface RefundInput {
  kind: 'refund';
  connection: number;
  externalId: string;
  saleExternalId: string;
  time: number;
  namedLocation: number | 'none';
  restock: boolean;
  lines: { item: number; quantity: number }[] | null;
}
export interface CountInput {
  kind: 'count';
  connection: number;
  externalId: string;
  time: number;
  location: number;
  lines: { item: number; quantity: number }[];
}
export interface AdjustmentInput extends Omit<CountInput, 'kind'> {
  kind: 'adjustment';
}
export type Input = SaleInput | RefundInput | CountInput | AdjustmentInput;

export const ITEMS = [1, 2, 3, 4];
export const LOCATIONS = [1, 2];
export const CONNECTIONS = [1, 2, 3];
/** Items that nobody has heard of at first; their lines wait. */
export const UNKNOWN_AT_FIRST = [3, 4];

export const openingOf = (item: number, location: number): number => item * 10 + location;

/** Connections 1 and 2 share a group; 3 is alone. */
export const groupOf = (connection: number): string => (connection < 3 ? 'shop' : 'alone');
/** The only location that a connection maps at first, and when a refund arrives; null: it maps both. */
export const onlyLocationOf = (connection: number): number | null =>
  [null, 1, null, 2][connection] ?? null;

const item = fc.constantFrom(...ITEMS);
const location = fc.constantFrom(...LOCATIONS);
const connection = fc.constantFrom(...CONNECTIONS);
const time = fc.integer({ min: 1, max: 12 });
const saleId = fc.constantFrom('s1', 's2');

const lines = (quantity: fc.Arbitrary<number>, maxLength = 4) =>
  fc.array(fc.record({ item, quantity }), { minLength: 1, maxLength });
const few = fc.integer({ min: 1, max: 5 });

const sale: fc.Arbitrary<SaleInput> = fc.record({
  kind: fc.constant('sale'),
  connection,
  externalId: saleId,
  time,
  location,
  lines: lines(few),
});
const refund: fc.Arbitrary<RefundInput> = fc.record({
  kind: fc.constant('refund'),
  connection,
  externalId: fc.constantFrom('r1', 'r2', 'r3', 'R1'),
  saleExternalId: saleId,
  time,
  namedLocation: fc.constantFrom<number | 'none'>('none', 'none', 1, 2),
  restock: fc.boolean(),
  lines: fc.option(lines(few), { nil: null }),
});
const countAt = (at: fc.Arbitrary<number>): fc.Arbitrary<CountInput> =>
  fc.record({
    kind: fc.constant('count'),
    connection,
    externalId: fc.constantFrom('c1', 'c2', 'c3'),
    time: at,
    location,
    lines: fc.uniqueArray(fc.record({ item, quantity: fc.integer({ min: 0, max: 30 }) }), {
      minLength: 1,
      maxLength: 4,
      selector: (line) => line.item,
    }),
  });
const count = countAt(time);
/** Of several in a world, two often have the very same time. */
const meetingCount = countAt(fc.oneof(time, fc.constantFrom(4, 8)));
const adjustment: fc.Arbitrary<AdjustmentInput> = fc.record({
  kind: fc.constant('adjustment'),
  connection,
  externalId: fc.constantFrom('a1', 'a2', 'a3'),
  time,
  location,
  lines: lines(fc.integer({ min: -5, max: 9 })),
});

/** Identity of a record, as the database's constraint has it. */
export const idOf = ({ connection: till, externalId }: Input): string => `${till}/${externalId}`;

const inputOf = (distinctCounts: boolean): fc.Arbitrary<Input> =>
  fc.oneof(
    { weight: 2, arbitrary: sale },
    { weight: 2, arbitrary: refund },
    distinctCounts ? count : { weight: 3, arbitrary: meetingCount },
    adjustment
  );

/**
 * A set of records, each id once (a till that sends two bodies under one id is another test). With
 * `distinctCounts`, no two counts of one item and place have the same time: then, and only then,
 * the order of arrival may not matter at all.
 */
export const records = (distinctCounts: boolean): fc.Arbitrary<Input[]> =>
  fc.uniqueArray(inputOf(distinctCounts), { maxLength: 14, selector: idOf }).map((inputs) => {
    const counted = new Set<string>();
    return inputs.filter((input) => {
      if (!distinctCounts || input.kind !== 'count') return true;
      const keys = input.lines.map((line) => `${line.item}@${input.location}@${input.time}`);
      if (keys.some((key) => counted.has(key))) return false;
      keys.forEach((key) => counted.add(key));
      return true;
    });
  });

/**
 * What happens to the processor besides records: an item becomes known, a connection maps the
 * locations that it had not mapped, a grace period ends.
 */
export type Chance = { at: number; what: { learn: number } | { map: number } | 'graces end' };

export interface Run {
  /** Indexes of the records in the order of arrival, some of them more than once. */
  arrivals: number[];
  /** Decides in which order accepted records are processed; an odd one together with the next. */
  queueSeed: number[];
  chances: Chance[];
}

export const runOf = (length: number): fc.Arbitrary<Run> => {
  const indexes = [...Array(length).keys()];
  return fc.record({
    arrivals: fc
      .tuple(
        fc.shuffledSubarray(indexes, { minLength: length }),
        fc.shuffledSubarray(indexes),
        fc.shuffledSubarray(indexes)
      )
      .map((orders) => orders.flat()),
    queueSeed: fc.array(fc.nat(1000), { minLength: length, maxLength: length }),
    chances: fc.array(
      fc.record({
        at: fc.nat(length),
        what: fc.oneof(
          fc.record({ learn: fc.constantFrom(...UNKNOWN_AT_FIRST) }),
          fc.record({ map: connection }),
          fc.constant('graces end' as const)
        ),
      }),
      { maxLength: 4 }
    ),
  });
};
