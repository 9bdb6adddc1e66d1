import { KIND_DEFINITIONS } from '../mapping/kinds';
import {
  type AttributeShape,
  type AttributesOf,
  type FieldSource,
  type MappedField,
  MappingError,
  type Source,
} from '../mapping/mapping';

/** One answer of `form.submitted`; docs/contract-webhooks.md#events. */
interface Answer {
  id: string;
  label: string;
  type: string;
  value: unknown;
}

const SYSTEM = new Set(
  'id documentId createdAt updatedAt publishedAt firstPublishedAt createdBy updatedBy locale localizations'.split(
    ' '
  )
);

/** Attributes that a visitor fills in and a receiver may see. */
const isAnswer = (name: string, shape: AttributeShape): boolean =>
  !SYSTEM.has(name) &&
  !shape.private &&
  !['password', 'relation', 'dynamiczone'].includes(shape.type);

/** `visitDate` -> `Visit date`. */
export const labelOf = (name: string): string => {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .split(/[\s_-]+/)
    .filter(Boolean)
    .join(' ')
    .toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
};

export const answersOf = (
  values: Readonly<Record<string, unknown>>,
  attributes: Readonly<Record<string, AttributeShape>>
): Answer[] =>
  Object.entries(attributes)
    .filter(([name, shape]) => isAnswer(name, shape))
    .map(([name, shape]) => ({
      id: name,
      label: labelOf(name),
      type: shape.type,
      value: values[name] ?? null,
    }));

interface FormOption {
  contentType: string;
  title: string;
  addSender: boolean;
  fields: Record<string, FieldSource>;
}

/** A form of the site: the source of its entries and what `form.submitted` says of it. */
export interface Form {
  source: Source;
  uid: string;
  title: string;
  attributes: Readonly<Record<string, AttributeShape>>;
}

const list = (names: Iterable<string>): string => [...names].sort().join(', ');

const contactPaths = (): string[] =>
  KIND_DEFINITIONS.contact.fields
    .map(({ path }) => path)
    .filter((path) => !path.startsWith('dates.') && path !== 'name' && path !== 'fields');

const fieldOf = (
  path: string,
  attribute: string | null,
  shape: AttributeShape | null,
  compute: MappedField['compute'] = null
): MappedField => ({ path, type: 'text', bookkeeping: false, attribute, shape, compute });

const senderField = (
  at: string,
  path: string,
  from: FieldSource,
  attributes: Record<string, AttributeShape>,
  uid: string
): MappedField => {
  const known = contactPaths();
  if (!known.includes(path) && !/^fields\.[^.]+$/.test(path)) {
    throw new MappingError(
      `${at}: a form cannot fill "${path}" of a contact. Possible: ${list([...known, 'fields.<name>'])}.`
    );
  }
  if (typeof from === 'function') return fieldOf(`contact.${path}`, null, null, from);
  const shape = attributes[from];
  if (!shape || shape.type === 'password') {
    const possible = Object.keys(attributes).filter((name) =>
      isAnswer(name, attributes[name] as AttributeShape)
    );
    throw new MappingError(
      `${at}.${path}: ${uid} has no attribute "${from}" to read. Possible: ${list(possible)}.`
    );
  }
  return fieldOf(`contact.${path}`, from, shape);
};

/**
 * Joins a form's options to its content type.
 * @throws MappingError, which stops the boot and lists what is possible.
 */
export const resolveForm = (
  index: number,
  option: FormOption,
  attributesOf: AttributesOf,
  knownTypes: () => string[]
): Form => {
  const at = `switchboard.forms.${index}`;
  const uid = option.contentType;
  const attributes = attributesOf(uid);
  if (!attributes) {
    throw new MappingError(
      `${at}.contentType: there is no content type "${uid}". Possible: ${list(knownTypes())}.`
    );
  }
  if (option.fields.email === undefined) {
    const emails = Object.keys(attributes).filter((name) => attributes[name]?.type === 'email');
    throw new MappingError(
      `${at}.fields.email: says which attribute holds the sender's address. Possible: ${list(emails)}.`
    );
  }
  const sender = Object.entries(option.fields).map(([path, from]) =>
    senderField(`${at}.fields`, path, from, attributes, uid)
  );
  const answers = Object.entries(attributes)
    .filter(([name, shape]) => isAnswer(name, shape))
    .map(([name, shape]) => fieldOf(`answers.${name}`, name, shape));
  const source: Source = {
    kind: 'form',
    uid,
    own: false,
    fields: [...sender, ...answers],
    tags: null,
  };
  return { source, uid, title: option.title, attributes };
};
