import type { MappedType, RecordTypes } from '../../../shared/contracts/overview';
import { type Options, SOURCE_KINDS } from '../config/schema';
import type { ContentTypeUid } from '../entries/rules';

const fieldsOf = (fields: Readonly<Record<string, unknown>>): MappedType['fields'] =>
  Object.entries(fields).map(([name, source]) => ({
    name,
    attribute: typeof source === 'string' ? source : null,
  }));

/** Which content types of the site stand for the plugin's own, as its options say; read-only. */
export const mappedTypes = ({ features, sources, forms, stock }: Options): MappedType[] => {
  const types: MappedType[] = [];
  // Options without effect, because the site lacks the feature, are left out.
  if (features.crm) {
    for (const kind of SOURCE_KINDS) {
      const source = sources[kind];
      if (!source) continue;
      const fields = fieldsOf(source.fields);
      types.push({ purpose: 'source', label: kind, content_type: source.contentType, fields });
    }
    for (const form of forms) {
      const fields = fieldsOf(form.fields);
      types.push({ purpose: 'form', label: form.title, content_type: form.contentType, fields });
    }
  }
  if (features.pos && stock) {
    const { contentType, sku, gtin, quantity } = stock;
    const fields = fieldsOf({ sku, ...(gtin && { gtin }), ...(quantity && { quantity }) });
    types.push({ purpose: 'stock', label: 'item', content_type: contentType, fields });
  }
  return types;
};

/** Content types of the records in events: the site's or the plugin's, and those configured as sources. */
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
