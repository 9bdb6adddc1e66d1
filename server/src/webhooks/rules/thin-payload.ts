import { isRecord } from '../../runtime/text';
import { isComposite } from './filter-schema';

/** Keys of a thin payload: ids, the names of changed fields, and kinds of things or ways. */
const KEPT = /^(?:id|changed|source|type)$|_ids?$/;

/** A list of ids or names is kept with its key; a list of objects is thinned as each of them is. */
const isPlain = (value: unknown): boolean =>
  Array.isArray(value) ? value.every((one) => !isComposite(one)) : !isComposite(value);

/**
 * An event's `data` without personal data: only `id`, `*_id`, `*_ids`, `changed`, `source` and `type` keep their
 * values; docs/management-api.md#thin-payloads. `data` is JSON.
 */
export const thin = (data: unknown): unknown => {
  if (Array.isArray(data)) return data.filter(isComposite).map(thin);
  if (!isComposite(data)) return data;
  return Object.fromEntries(
    Object.entries(data).flatMap(([key, value]) => {
      if (isPlain(value)) return KEPT.test(key) ? [[key, value]] : [];
      return [[key, thin(value)]];
    })
  );
};

const pick = (value: unknown, ...keys: readonly string[]): Record<string, unknown> =>
  isRecord(value)
    ? Object.fromEntries(
        keys.filter((key) => Object.hasOwn(value, key)).map((key) => [key, value[key]])
      )
    : {};

/** An event's thin form: of an entry or file only the document id stays; docs/any-content-type.md#thin-payloads. */
export const thinEvent = (event: string, data: unknown): unknown => {
  if (!isRecord(data)) return thin(data);
  const { entry, media } = data;
  const changed = pick(data, 'changed');
  if (/^entry\.(created|updated|published|unpublished|deleted)$/.test(event)) {
    const kind = pick(data, 'content_type', 'locale', 'status');
    return { ...kind, entry: pick(entry, 'documentId'), ...changed };
  }
  return /^media\.(created|updated|deleted)$/.test(event)
    ? { media: pick(media, 'id', 'documentId'), ...changed }
    : thin(data);
};
