import type { MappingTarget, UnknownValue } from '../../../../shared/contracts/pos-mapping';
import type { ChosenItem } from '../../utils/chosen-item';

/** The target of an unknown value, as far as it was entered. */
export interface Draft {
  means: 'item' | 'create' | 'location' | 'ignore' | null;
  item: ChosenItem | null;
  /** An item's SKU or a location's code, if the user may not see the stock. */
  typed: string;
  sku: string;
  gtin: string;
  name: string;
  location: number | null;
}

/** Nothing is chosen; a new item would have the value as its SKU. */
export const emptyDraft = ({ kind, value }: UnknownValue): Draft => ({
  means: kind === 'location_ref' ? 'location' : null,
  item: null,
  typed: '',
  sku: kind === 'sku' ? value : '',
  gtin: kind === 'gtin' ? value : '',
  name: '',
  location: null,
});

/** The draft's target; null if something is still missing. */
export const targetOf = (draft: Draft): MappingTarget | null => {
  const typed = draft.typed.trim();
  const sku = draft.sku.trim();
  switch (draft.means) {
    case 'item': {
      const item = draft.item?.id ?? typed;
      return item === '' ? null : { item };
    }
    case 'location': {
      const location = draft.location ?? typed;
      return location === '' ? null : { location };
    }
    case 'create':
      if (sku === '') return null;
      return {
        create: { sku, gtin: draft.gtin.trim() || null, name: draft.name.trim() || null },
      };
    case 'ignore':
      return { ignore: true };
    default:
      return null;
  }
};
