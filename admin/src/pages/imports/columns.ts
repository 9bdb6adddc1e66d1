import {
  CONTACT_BAGS,
  CONTACT_NUMBER_COLUMNS,
  CONTACT_TEXT_COLUMNS,
  type FileKind,
  ITEM_TEXT_COLUMNS,
} from '../../../../shared/contracts/imports';
import { type Problems } from '../../utils/errors';

/** Which column of a file goes where. */

const KNOWN: Readonly<Record<FileKind, readonly string[]>> = {
  items: [...ITEM_TEXT_COLUMNS, 'low_at', 'quantity'],
  contacts: [...CONTACT_TEXT_COLUMNS, ...CONTACT_NUMBER_COLUMNS, 'tags', ...CONTACT_BAGS],
};

export const REQUIRED: Readonly<Record<FileKind, string>> = { items: 'sku', contacts: 'email' };

/** Names that files of other programs have for the same. */
const ALSO: Readonly<Record<string, string>> = {
  ean: 'gtin',
  barcode: 'gtin',
  qty: 'quantity',
  stock: 'quantity',
  e_mail: 'email',
  mail: 'email',
};

const normalize = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[\s-]+/g, '_');

/** `quantity.north`, `fields.size`, `address.city`: what is named after the site's own words. */
const isOwn = (kind: FileKind, heading: string): boolean =>
  (kind === 'items' ? /^quantity\../i : /^(fields|address)\../i).test(heading);

/** The column that the server would recognise by a heading; null if none. */
export const guess = (kind: FileKind, heading: string): string | null => {
  const plain = heading.trim();
  if (isOwn(kind, plain)) return plain;
  const name = normalize(heading);
  const meant = ALSO[name] ?? name;
  return KNOWN[kind].includes(meant) ? meant : null;
};

/**
 * The columns that a heading can be assigned to.
 * @param codes  of the site's locations
 */
export const choicesOf = (kind: FileKind, heading: string, codes: readonly string[]): string[] => {
  const plain = heading.trim();
  const own =
    kind === 'items'
      ? codes.map((code) => `quantity.${code}`)
      : [`fields.${plain.replace(/^(fields|address)\./i, '')}`];
  return [...new Set([...KNOWN[kind], ...own, ...(isOwn(kind, plain) ? [plain] : [])])].filter(
    (choice) => !choice.endsWith('.')
  );
};

/**
 * Problems that keep a file from being imported.
 * @returns `required`: the column that is missing; `twice`: one that several columns are to be
 */
export const problemsOf = (kind: FileKind, names: readonly (string | null)[]): Problems => {
  const given = names.filter((name) => name !== null);
  const twice = given.find((name, index) => given.indexOf(name) < index);
  return {
    ...(!given.includes(REQUIRED[kind]) && { required: REQUIRED[kind] }),
    ...(twice !== undefined && { twice }),
  };
};
