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

type Data = Readonly<Record<string, unknown>>;

const pick = (value: unknown, ...keys: readonly string[]): Record<string, unknown> =>
  isContainer(value)
    ? Object.fromEntries(
        keys.filter((key) => Object.hasOwn(value, key)).map((key) => [key, (value as Data)[key]])
      )
    : {};

/** Names of a site's own attributes say nothing of what they hold, so of an entry its document id stays. */
const thinEntry = (data: Data): Data => ({
  ...pick(data, 'content_type', 'locale', 'status'),
  entry: pick(data.entry, 'documentId'),
  ...pick(data, 'changed'),
});

const thinMedia = (data: Data): Data => ({
  media: pick(data.media, 'id', 'documentId'),
  ...pick(data, 'changed'),
});

/** The thin form of an event: that of entries and files is their own; docs/any-content-type.md#thin-payloads. */
export const thinEvent = (event: string, data: unknown): unknown => {
  if (isContainer(data) && !Array.isArray(data)) {
    if (/^entry\.(created|updated|published|unpublished|deleted)$/.test(event)) {
      return thinEntry(data as Data);
    }
    if (/^media\.(created|updated|deleted)$/.test(event)) return thinMedia(data as Data);
  }
  return thin(data);
};
