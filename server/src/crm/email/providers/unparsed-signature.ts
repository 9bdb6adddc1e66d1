import { isValues, parseJson, type Values } from './values';

/**
 * Finds Mailgun's signature in a body that is not to be parsed before the signature holds. What is
 * found is only what somebody shows: the parsed body's own is judged again.
 */

const NAMES = ['timestamp', 'token', 'signature'] as const;
const VALUE_MAX = 512;

/** `"signature": { … }`, which has no object within it; the first that has all of its keys. */
export const signatureInJson = (bytes: Buffer): Values | null => {
  const text = bytes.toString('latin1');
  for (const found of text.matchAll(/"signature"\s{0,100}:\s{0,100}(\{[^{}]{0,2000}\})/g)) {
    const value = parseJson(Buffer.from(found[1] ?? '', 'latin1'));
    if (isValues(value) && NAMES.every((name) => name in value)) return value;
  }
  return null;
};

const inUrlencoded = (bytes: Buffer): Values => {
  const text = bytes.toString('latin1');
  return Object.fromEntries(
    NAMES.flatMap((name) => {
      const value = new RegExp(`(?:^|&)${name}=([^&]{0,${VALUE_MAX}})`).exec(text)?.[1];
      return value === undefined ? [] : [[name, new URLSearchParams(`v=${value}`).get('v')]];
    })
  );
};

const inMultipart = (bytes: Buffer): Values =>
  Object.fromEntries(
    NAMES.flatMap((name) => {
      const at = bytes.indexOf(`name="${name}"`);
      const start = at < 0 ? -1 : bytes.indexOf('\r\n\r\n', at);
      const end = start < 0 ? -1 : bytes.indexOf('\r\n--', start + 4);
      const fits = end >= 0 && end - start <= VALUE_MAX;
      return fits ? [[name, bytes.toString('utf8', start + 4, end)]] : [];
    })
  );

export const signatureInForm = (bytes: Buffer, contentType: string): Values | null =>
  /^multipart/i.test(contentType) ? inMultipart(bytes) : inUrlencoded(bytes);
