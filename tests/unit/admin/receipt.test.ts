import { comesTo, readReceipt } from '../../../admin/src/pages/events/receipt';

const refund = (more: object) => {
  const receipt = readReceipt('refund', JSON.stringify({ sale_external_id: 'S', ...more }));
  if (!receipt) throw new Error('no receipt');
  return receipt;
};

describe('what a record comes to', () => {
  it.each([
    ['as its till said', { currency: 'JPY', total: 34 }, null, 'JPY', 34],
    ['as it counts', {}, { currency: 'KWD', total: 1000 }, 'KWD', 1000],
    ['in the currency of its sale', { currency: 'EUR' }, { currency: 'JPY', total: 34 }, 'JPY', 34],
    ['for no sum below nothing', { total: -5 }, { currency: 'JPY', total: 34 }, 'JPY', 34],
    ['to be nothing where nobody says', { currency: 7, total: '1' }, null, null, null],
  ])('is told %s', (_how, body, counted, currency, total) => {
    expect(comesTo(refund(body), counted)).toMatchObject({ currency, total });
  });
});
