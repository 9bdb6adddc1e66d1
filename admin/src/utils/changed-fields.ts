/** Equal as they would be sent. */
export const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** The fields of `values` that have changed. */
export const changedFields = <Values extends object>(
  values: Values,
  before: Values
): Partial<Values> =>
  Object.fromEntries(
    Object.entries(values).filter(([field, value]) => !same(value, before[field as keyof Values]))
  ) as Partial<Values>;
