import { isBasic, parseBasic } from '../../../server/src/access/basic-authentication';

const encode = (text: string): string => Buffer.from(text, 'utf8').toString('base64');

describe('a Basic header', () => {
  it('is divided at its first colon', () => {
    expect(parseBasic(`Basic ${encode('a@b.test:pass:word')}`)).toEqual({
      user: 'a@b.test',
      password: 'pass:word',
    });
  });

  it('may write its scheme in any case and hold any language', () => {
    expect(parseBasic(`bASIC   ${encode('zoë@b.test:ключ')}`)).toEqual({
      user: 'zoë@b.test',
      password: 'ключ',
    });
  });

  it.each([
    ['nothing', undefined],
    ['another scheme', `Bearer ${encode('a:b')}`],
    ['a scheme that only begins like it', `Basically ${encode('a:b')}`],
    ['no credentials', 'Basic'],
    ['no base64', 'Basic a@b.test:password'],
    ['no colon', `Basic ${encode('password')}`],
    ['no user', `Basic ${encode(':password')}`],
    ['two values', `Basic ${encode('a:b')}, Basic ${encode('c:d')}`],
    ['more than anybody types', `Basic ${encode(`a:${'b'.repeat(5000)}`)}`],
  ])('without sense is null, never an error: %s', (_what, header) => {
    expect(parseBasic(header)).toBeNull();
  });

  it('counts as Basic even where it makes no sense, so that it is refused, not ignored', () => {
    expect(isBasic('Basic')).toBe(true);
    expect(isBasic('Basic %%%')).toBe(true);
    expect(isBasic('Basically x')).toBe(false);
    expect(isBasic('Bearer x')).toBe(false);
    expect(isBasic(undefined)).toBe(false);
  });
});
