import { Readable } from 'node:stream';
// eslint-disable-next-line @typescript-eslint/no-require-imports -- the command is plain JavaScript
const { readsYes } = require('../../../bin/lib/confirm') as {
  readsYes(input: NodeJS.ReadableStream): Promise<boolean>;
};

describe('a confirmation', () => {
  it.each(['yes\n', 'yes', ' yes \r\n', 'yes\nno\n'])('is given by %j', async (text) => {
    expect(await readsYes(Readable.from([text]))).toBe(true);
  });

  it.each(['', '\n', 'no\n', 'y\n', 'YES\n', 'yes please\n', '\nyes\n'])(
    'is not given by %j',
    async (text) => {
      expect(await readsYes(Readable.from([text]))).toBe(false);
    }
  );
});
