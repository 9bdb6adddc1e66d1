import type { MappedType } from '../../../shared/contracts/overview';
import type { Options } from '../config/schema';

const fieldsOf = (fields: Readonly<Record<string, unknown>>): MappedType['fields'] =>
  Object.entries(fields).map(([name, source]) => ({
    name,
    attribute: typeof source === 'string' ? source : null,
  }));

/** Which content types of the site stand for the plugin's own, as its options say; read-only. */
export const mappedTypes = ({ sources, forms, stock }: Options): MappedType[] => [
  ...Object.entries(sources).flatMap(([kind, source]) =>
    source
      ? [
          {
            purpose: 'source' as const,
            label: kind,
            content_type: source.contentType,
            fields: fieldsOf(source.fields),
          },
        ]
      : []
  ),
  ...forms.map((form) => ({
    purpose: 'form' as const,
    label: form.title,
    content_type: form.contentType,
    fields: fieldsOf(form.fields),
  })),
  ...(stock
    ? [
        {
          purpose: 'stock' as const,
          label: 'item',
          content_type: stock.contentType,
          fields: fieldsOf({
            sku: stock.sku,
            ...(stock.gtin && { gtin: stock.gtin }),
            ...(stock.quantity && { quantity: stock.quantity }),
          }),
        },
      ]
    : []),
];
