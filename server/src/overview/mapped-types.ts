import type { MappedType, RecordTypes } from '../../../shared/contracts/overview';
import { SUBJECT_TYPES } from '../../../shared/contracts/webhooks';
import type { Options } from '../config/schema';

const fieldsOf = (fields: Readonly<Record<string, unknown>>): MappedType['fields'] =>
  Object.entries(fields).map(([name, source]) => ({
    name,
    attribute: typeof source === 'string' ? source : null,
  }));

/** What has no effect, because the site does without the feature, is not said. */
const effective = ({ features, sources, forms, stock }: Options) => ({
  sources: features.crm ? sources : {},
  forms: features.crm ? forms : [],
  stock: features.pos ? stock : undefined,
});

const listed = ({ sources, forms, stock }: ReturnType<typeof effective>): MappedType[] => [
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

/** Which content types of the site stand for the plugin's own, as its options say; read-only. */
export const mappedTypes = (options: Options): MappedType[] => listed(effective(options));

/** Where the records are that events are about: the site's own types, or the plugin's. */
export const recordTypes = ({ features, sources }: Options): RecordTypes =>
  features.crm
    ? Object.fromEntries(
        SUBJECT_TYPES.map((type) => [
          type,
          sources[type]?.contentType ?? `plugin::switchboard.${type}`,
        ])
      )
    : {};
