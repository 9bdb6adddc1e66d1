import { createIntl } from 'react-intl';
import { waitingRecords } from '../../../admin/src/pages/mapping/waiting-records';
import type { Translate } from '../../../admin/src/utils/text';
import { readTexts } from '../../support/translations';

/** The texts of a language, in the plural forms that it has. */
const textIn = (language: string): Translate => {
  const intl = createIntl({ locale: language, messages: readTexts(language) });
  return (id, values) => intl.formatMessage({ id }, values);
};

describe('what waits for an unmapped value', () => {
  const onlySales = { by_kind: { sale: 2, refund: 0, inventory: 0 }, pieces: 3 };
  const oneOfEach = { by_kind: { sale: 1, refund: 1, inventory: 1 }, pieces: 1 };
  const many = { by_kind: { sale: 0, refund: 2, inventory: 3 }, pieces: 0 };

  test.each([
    ['en', onlySales, '2 sales, 3 units'],
    ['en', oneOfEach, '1 sale, 1 refund, 1 stock count, 1 unit'],
    ['en', many, '2 refunds, 3 stock counts, 0 units'],
    ['de', onlySales, '2 Verkäufe, 3 Stück'],
    ['de', oneOfEach, '1 Verkauf, 1 Erstattung, 1 Zählung, 1 Stück'],
    ['de', many, '2 Erstattungen, 3 Zählungen, 0 Stück'],
    ['fr', onlySales, '2 ventes, 3 unités'],
    ['fr', oneOfEach, '1 vente, 1 remboursement, 1 inventaire, 1 unité'],
    ['fr', many, '2 remboursements, 3 inventaires, 0 unité'],
  ])('is told by kind of record in %s: %j', (language, row, told) => {
    expect(waitingRecords(row, textIn(language))).toBe(told);
  });
});
