/** What a thin payload keeps: ids, the names of what changed, and what kind of thing or way it was. */
const KEPT = /^(?:id|changed|source|type)$|_ids?$/;

const isContainer = (value: unknown): value is object =>
  typeof value === 'object' && value !== null;

/** A list of ids or names is kept with its key; a list of objects is thinned as each of them is. */
const isPlain = (value: unknown): boolean =>
  Array.isArray(value) ? value.every((one) => !isContainer(one)) : !isContainer(value);

/**
 * The `data` of an event without what it says of anybody: its shape stays, and of its values only
 * those named `id`, `*_id`, `*_ids`, `changed`, `source` and `type`; docs/management-api.md#thin-payloads.
 * @param data as JSON has it
 */
export const thin = (data: unknown): unknown => {
  if (Array.isArray(data)) return data.filter(isContainer).map(thin);
  if (!isContainer(data)) return data;
  return Object.fromEntries(
    Object.entries(data).flatMap(([key, value]) => {
      if (isPlain(value)) return KEPT.test(key) ? [[key, value]] : [];
      return [[key, thin(value)]];
    })
  );
};
