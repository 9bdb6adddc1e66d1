import { isRecord } from '../../../runtime/is-record';

/** Reads values out of what a provider posts, whatever it turns out to be. */

export type Values = Readonly<Record<string, unknown>>;

export const isValues: (value: unknown) => value is Values = isRecord;

export const textOf = (value: unknown): string | null =>
  typeof value === 'string' && value !== '' ? value : null;

/** Unix seconds, as a number or in digits, to epoch milliseconds. */
export const timeOf = (value: unknown): number | null => {
  const seconds = typeof value === 'string' ? Number(value) : value;
  return typeof seconds === 'number' && Number.isFinite(seconds) && seconds > 0
    ? Math.round(seconds * 1000)
    : null;
};

export const parseJson = (bytes: Buffer): unknown => {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return null;
  }
};

/** The text fields of a form, multipart or urlencoded; null where the body is neither. */
export const formFields = async (bytes: Buffer, contentType: string): Promise<Values | null> => {
  try {
    const response = new Response(new Uint8Array(bytes), {
      headers: { 'content-type': contentType },
    });
    const fields: Record<string, unknown> = {};
    for (const [name, value] of await response.formData()) {
      if (typeof value === 'string') fields[name] = value;
    }
    return fields;
  } catch {
    return null;
  }
};

/** `"Ada L" <ada@example.com>` -> `ada@example.com`. */
export const addressOf = (from: unknown): string | null => {
  const text = textOf(from)?.trim();
  if (!text) return null;
  const address = /<([^<>]+)>\s*$/.exec(text)?.[1] ?? text;
  return address.includes('@') ? address.trim() : null;
};
