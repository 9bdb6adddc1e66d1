/** Which values a contact has after a merge, for the server and for the screen that shows it before. */

/** The part of a content type's attribute that the rules look at. */
export interface MergedShape {
  type: string;
  default?: unknown;
  /** false: the plugin or the host derives it. */
  writable?: boolean;
}

type Entry = Readonly<Record<string, unknown>>;

const NOT_VALUES = new Set(['relation', 'media', 'component', 'dynamiczone', 'password']);
/** Values that belong to the row and not to the person; a contact goes to the bin only by hand. */
const OF_ROW =
  /^(id|documentId|(created|updated|published|firstPublished)At|locale|trashed_at|trashedAt)$/;

/** True for an attribute whose value the contact that is kept may take from the other one. */
export const isMergedValue = (name: string, { type, writable }: MergedShape): boolean =>
  !NOT_VALUES.has(type) && writable !== false && !OF_ROW.test(name);

const isObject = (value: unknown): value is Entry =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);

/** Nothing, or what a new contact has anyway, such as the status `pending`. */
const isEmpty = (value: unknown, byDefault?: unknown): boolean => {
  if (value === null || value === undefined || value === '') return true;
  if (typeof value === 'string' && typeof byDefault === 'number')
    return Number(value) === byDefault;
  if (byDefault !== undefined && value === byDefault) return true;
  return isObject(value) && Object.keys(value).length === 0;
};

/** The value of the contact that is kept, or the other one's if that is empty; objects are completed by key. */
export const mergedValue = (shape: MergedShape, kept: unknown, other: unknown): unknown => {
  if (isEmpty(other, shape.default)) return kept;
  if (isEmpty(kept, shape.default)) return other;
  if (!isObject(kept) || !isObject(other)) return kept;
  const missing = Object.entries(other).filter(
    ([name, value]) => !isEmpty(value) && (!Object.hasOwn(kept, name) || isEmpty(kept[name]))
  );
  return missing.length === 0 ? kept : { ...kept, ...Object.fromEntries(missing) };
};
