import type { MappedType, RecordTypes } from '../../../shared/contracts/overview';
import { type Options, SOURCE_KINDS } from '../config/schema';
import type { ContentTypeUid } from '../entries/rules';

const fieldsOf = (fields: Readonly<Record<string, unknown>>): MappedType['fields'] =>
  Object.entries(fields).map(([name, source]) => ({
    name,
    attribute: typeof source === 'string' ? source : null,
  }));

/** What has no effect, because the site does without the feature, is not said. */
const effective = ({ features, sources, forms, stock }: Options) => ({
  sources: features.crm ? sources : ({} as Options['sources']),
  forms: features.crm ? forms : [],
  stock: features.pos ? stock : undefined,
});

const listed = ({ sources, forms, stock }: ReturnType<typeof effective>): MappedType[] => [
  ...SOURCE_KINDS.map((kind) => [kind, sources[kind]] as const).flatMap(([kind, source]) =>
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

/**
 * Where the records are that events are about: the site's own types, or the plugin's, and the content
 * types that the site's options name as sources.
 */
export const recordTypes = (
  { features, sources }: Options,
  entryTypes: readonly ContentTypeUid[] = []
): RecordTypes => ({
  ...Object.fromEntries(entryTypes.map((uid) => [uid, uid])),
  ...(features.crm &&
    Object.fromEntries(
      SOURCE_KINDS.map((type) => [
        type,
        sources[type]?.contentType ?? `plugin::switchboard.${type}`,
      ])
    )),
});
