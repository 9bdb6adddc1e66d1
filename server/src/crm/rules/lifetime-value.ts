/** Lifetime values are whole ten thousandths, of which every currency's minor unit is a multiple. */
const PLACES = 4;
const ONE = 10n ** BigInt(PLACES);

/** The limits of a column: places after the point, and the largest number in units. */
const COLUMNS = {
  /** That of the plugin's own contacts: thirty digits, four of them after the point. */
  own: { places: 4, largest: 10n ** 30n - 1n },
  /** The host's: ten digits, two of them after the point. */
  decimal: { places: 2, largest: 9_999_999_999n * 100n },
  float: { places: 4, largest: BigInt(Number.MAX_SAFE_INTEGER) },
  integer: { places: 0, largest: (2n ** 31n - 1n) * ONE },
  biginteger: { places: 0, largest: BigInt(Number.MAX_SAFE_INTEGER) * ONE },
} as const;

export type ValueKind = keyof typeof COLUMNS;

export const isValueKind = (type: string): type is ValueKind => Object.hasOwn(COLUMNS, type);

/** An amount in minor units of a currency with this many digits, in units. */
export const toUnits = (minor: bigint, digits: number): bigint =>
  minor * 10n ** BigInt(PLACES - digits);

/** A column's value in units, by its digits; 0 for none. */
export const readUnits = (value: unknown): bigint => {
  const [, sign, whole, fraction = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(String(value ?? '')) ?? [];
  if (whole === undefined) return BigInt(Math.round(Number(value ?? 0) * 10 ** PLACES) || 0);
  return BigInt(`${sign ?? ''}${whole}${fraction.slice(0, PLACES).padEnd(PLACES, '0')}`);
};

export const unitsText = (units: bigint): string => {
  const size = units < 0n ? -units : units;
  const text = `${size / ONE}.${String(size % ONE).padStart(PLACES, '0')}`;
  return `${units < 0n ? '-' : ''}${text}`;
};

/** The nearest that a column can hold. */
const held = (units: bigint, column: ValueKind): bigint => {
  const { places, largest } = COLUMNS[column];
  const step = 10n ** BigInt(PLACES - places);
  const half = units < 0n ? -step / 2n : step / 2n;
  const rounded = ((units + half) / step) * step;
  if (rounded > largest) return largest;
  return rounded < -largest ? -largest : rounded;
};

/** The value after purchases changed from `before` to `after`; rounding is reversed exactly, so no error adds up. */
export const follow = (
  value: bigint,
  { before, after, column }: { before: bigint; after: bigint; column: ValueKind }
): bigint => held(value - held(before, column) + after, column);
