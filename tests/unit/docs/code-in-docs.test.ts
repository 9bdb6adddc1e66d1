import { createRequire } from 'node:module';
import { generateSecret, signatureHeaders } from '../../../server/src/webhooks/rules/signature';
import { codeBlocks, readDocument, squeezed } from './support/markdown';

describe('docs/receivers.md', () => {
  const quoted = codeBlocks(readDocument('docs/receivers.md')).filter(({ from }) => from !== null);

  it('quotes each language that has an example', () => {
    expect(new Set(quoted.map(({ language }) => language))).toEqual(
      new Set(['js', 'python', 'php', 'csharp', 'go'])
    );
  });

  it.each(quoted)('quotes $from as it is', ({ from, code }) => {
    expect(squeezed(readDocument(String(from)))).toContain(squeezed(code));
  });
});

describe('the verifier in README.md', () => {
  type Verifier = (secret: string, headers: object, raw: Buffer, now?: number) => boolean;
  const block = codeBlocks(readDocument('README.md')).find(({ code }) =>
    code.includes('isGenuine')
  );
  const isGenuine = new Function('require', `${block?.code}; return isGenuine;`)(
    createRequire(__filename)
  ) as Verifier;
  const secret = generateSecret();
  const body = '{"data":"Zoë"}';
  const at = 1_772_373_900;
  const headers = Object.fromEntries(
    Object.entries(
      signatureHeaders({ secret, deliveryId: 'd', event: 'ping', timestamp: at, body })
    ).map(([name, value]) => [name.toLowerCase(), value])
  );

  it('accepts what the plugin signs, for 300 seconds', () => {
    expect(isGenuine(secret, headers, Buffer.from(body), at)).toBe(true);
    expect(isGenuine(secret, headers, Buffer.from(body), at + 300)).toBe(true);
    expect(isGenuine(secret, headers, Buffer.from(body), at + 301)).toBe(false);
  });

  it('refuses another body, another secret and no headers', () => {
    expect(isGenuine(secret, headers, Buffer.from(`${body} `), at)).toBe(false);
    expect(isGenuine(generateSecret(), headers, Buffer.from(body), at)).toBe(false);
    expect(isGenuine(secret, {}, Buffer.from(body), at)).toBe(false);
  });
});
