const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)$/;

/** A number as people write one; NaN for the other ways that JavaScript knows: `0x10`, `1e3`. */
export const decimalOf = (cell: string): number => (DECIMAL.test(cell) ? Number(cell) : Number.NaN);
