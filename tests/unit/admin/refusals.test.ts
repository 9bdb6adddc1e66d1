import { createIntl } from 'react-intl';
import { learnTexts } from '../../../admin/src/utils/loaded-texts';
import { describeError } from '../../../admin/src/utils/refusals';
import type { TextKey } from '../../../admin/src/utils/text';
import { CAUSES } from '../../../server/src/webhooks/managing/assistant-tools';
import { REFUSAL_CODES } from '../../../shared/contracts/refusals';
import { readTexts as read } from '../../support/translations';

const keys = Object.keys(read('en'));
learnTexts(read('en'));

const textIn = (language: string) => {
  const { formatMessage } = createIntl({ locale: language, messages: read(language) });
  return (key: TextKey, values = {}): string => formatMessage({ id: key }, values);
};

test('every code that the server gives has a text, and there is none for another', () => {
  const coded = keys.filter((key) => key.startsWith('error.code.'));
  expect(coded.sort()).toEqual(REFUSAL_CODES.map((code) => `error.code.${code}`).sort());
});

test('every cause of a delivery has its two texts', () => {
  for (const length of ['short', 'long']) {
    expect(CAUSES.filter((cause) => !keys.includes(`cause.${length}.${cause}`))).toEqual([]);
  }
});

describe('what a screen says of a refusal', () => {
  const german = textIn('de');
  const answer = (status: number, message: string, details = {}) =>
    describeError(german, { status, name: 'AnError', message, details });

  test('names each field in the words of its code', () => {
    const errors = [
      { path: ['url'], message: 'The address is private.', code: 'url_private' },
      { path: ['lines', '0'], message: 'Too big', code: 'too_long', values: { maximum: 2048 } },
    ];
    expect(answer(400, 'url: …', { errors })).toBe(
      `url: ${german('error.code.url_private')}\nlines.0: Höchstens 2.048 Zeichen.`
    );
  });

  test('names a module as the screens do', () => {
    const details = { code: 'module_off', values: { module: 'sales_pipeline' } };
    expect(answer(409, 'The module Sales pipeline is switched off.', details)).toBe(
      'Das Modul Vertrieb ist ausgeschaltet.'
    );
  });

  test.each([401, 403, 404, 413, 429, 500, 503])('knows the status %d', (status) => {
    expect(answer(status, 'In English')).not.toContain('English');
  });

  test('says so where no answer came', () => {
    const error = { name: 'TypeError', message: 'Failed to fetch' };
    expect(describeError(german, error)).toBe(german('error.status.none'));
  });

  test('quotes what has no code, and in English only says it', () => {
    const error = { status: 400, message: 'The hook said no.' };
    expect(describeError(german, error)).toBe('Die Website lehnt das ab: „The hook said no.“');
    expect(describeError(textIn('en'), error)).toBe('The hook said no.');
  });
});
