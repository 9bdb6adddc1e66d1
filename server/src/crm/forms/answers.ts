import type { AttributeShape } from '../mapping/mapping';

/** One answer of `form.submitted`; docs/contract-webhooks.md#events. */
export interface Answer {
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
export const isAnswer = (name: string, shape: AttributeShape): boolean =>
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
