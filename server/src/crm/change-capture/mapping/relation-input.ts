import { isRecord } from '../../../runtime/is-record';
export type RowId = number | string;

/** What a write says about a relation, in any of the forms that the host's entity manager takes. */
export interface RelationInput {
  /** The links that are not named go. */
  replaces: boolean;
  /** Row ids that come, go or stay. */
  ids: RowId[];
}

const idsOf = (value: unknown): RowId[] => {
  const list = Array.isArray(value) ? value : [value];
  return list.flatMap((one: unknown) => {
    const id = isRecord(one) ? one.id : one;
    return typeof id === 'number' || typeof id === 'string' ? [id] : [];
  });
};

/** Row ids that are linked once the write is done. */
export const connectedIds = (value: unknown): RowId[] =>
  !isRecord(value) || 'id' in value ? idsOf(value) : [...idsOf(value.set), ...idsOf(value.connect)];

export const relationInput = (value: unknown): RelationInput => {
  const ids = connectedIds(value);
  if (!isRecord(value) || 'id' in value) return { replaces: true, ids };
  return { replaces: value.set !== undefined, ids: [...ids, ...idsOf(value.disconnect)] };
};
