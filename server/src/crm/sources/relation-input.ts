/** What a write says about a relation, in any of the forms that the host's entity manager takes. */
export interface RelationInput {
  /** The links that are not named go. */
  replaces: boolean;
  /** Row ids that come, go or stay. */
  ids: (number | string)[];
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const idsOf = (value: unknown): (number | string)[] => {
  const list = Array.isArray(value) ? value : [value];
  return list.flatMap((one: unknown) => {
    const id = isRecord(one) ? one.id : one;
    return typeof id === 'number' || typeof id === 'string' ? [id] : [];
  });
};

export const relationInput = (value: unknown): RelationInput => {
  if (!isRecord(value) || 'id' in value) return { replaces: true, ids: idsOf(value) };
  if ('set' in value && value.set !== undefined) return { replaces: true, ids: idsOf(value.set) };
  return { replaces: false, ids: [...idsOf(value.connect), ...idsOf(value.disconnect)] };
};
