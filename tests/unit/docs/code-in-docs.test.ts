import { createRequire } from 'node:module';
import Ajv2020 from 'ajv/dist/2020.js';
import { VALIDATORS } from '../../../server/src/pos/rules/schemas';
import {
  generateSecret,
  signatureHeaders,
} from '../../../server/src/webhooks/rules/request-headers';
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

describe('the verifier in docs/receivers.md', () => {
  type Verifier = (secret: string, headers: object, raw: Buffer, now?: number) => boolean;
  const block = codeBlocks(readDocument('docs/receivers.md')).find(({ code }) =>
    code.includes('function isGenuine')
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

describe('the filter in docs/any-content-type.md', () => {
  const [sample] = codeBlocks(readDocument('docs/any-content-type.md')).filter(({ code }) =>
    code.includes('"content_type": { "const"')
  );
  const passes = new Ajv2020().compile(JSON.parse(String(sample?.code)) as object);

  it('passes entries of that type, and no other event', () => {
    expect(passes({ content_type: 'api::article.article', entry: {} })).toBe(true);
    expect(passes({ content_type: 'api::page.page', entry: {} })).toBe(false);
    expect(passes({ media: { id: 1 } })).toBe(false);
  });
});

describe('the bodies in docs/tills.md', () => {
  const samples = codeBlocks(readDocument('docs/tills.md'))
    .filter(({ language, code }) => language === 'json' && code.includes('"external_id"'))
    .map(({ code }) => code);
  const [sale] = codeBlocks(readDocument('docs/tills.md')).flatMap(
    ({ code }) => /^send sale '(.*)'$/m.exec(code)?.[1] ?? []
  );
  const bodyWith = (part: string): string => {
    const found = samples.filter((code) => code.includes(part) && !code.includes('"event_id"'));
    expect(found).toHaveLength(1);
    return found[0]!;
  };
  it.each([
    ['sale', () => String(sale)],
    ['refund', () => bodyWith('"sale_external_id"')],
    ['inventory', () => bodyWith('"counts"')],
    ['closing', () => bodyWith('"totals"')],
  ] as const)('have a %s that is accepted', (kind, bodyOf) => {
    const validate = VALIDATORS[kind];
    expect([validate(JSON.parse(bodyOf())), validate.errors]).toEqual([true, null]);
  });
});
