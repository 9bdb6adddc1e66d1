import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { errors } from '@strapi/utils';

const NEWLINE = 0x0a;

/** How many bytes the character has that begins with this one; 0: none begins with it. */
const lengthOf = (lead: number): number => {
  if (lead >= 0xf0) return 4;
  if (lead >= 0xe0) return 3;
  return lead >= 0xc0 ? 2 : 0;
};

/** Where a character begins that is not whole yet, at most three bytes before the end. */
const wholeEnd = (bytes: Buffer): number => {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const at = bytes.length - back;
    const length = lengthOf(bytes[at] ?? 0);
    if (length > 0) return length > back ? at : bytes.length;
  }
  return bytes.length;
};

/** Reads over the bytes of a file, and says where they are not UTF-8. */
export class Utf8Check {
  private line = 1;
  private rest = Buffer.alloc(0);

  /** @throws ValidationError (400) that names the first line which is not UTF-8 */
  add(chunk: Buffer): void {
    const bytes = this.rest.length > 0 ? Buffer.concat([this.rest, chunk]) : chunk;
    const end = wholeEnd(bytes);
    const whole = bytes.subarray(0, end);
    const isGood = isUtf8(whole);
    for (let start = 0; ;) {
      const newline = whole.indexOf(NEWLINE, start);
      const next = newline < 0 ? whole.length : newline + 1;
      if (!isGood && !isUtf8(whole.subarray(start, next))) this.refuse();
      if (newline < 0) break;
      this.line += 1;
      start = next;
    }
    this.rest = Buffer.from(bytes.subarray(end));
  }

  /** The file has ended. @throws ValidationError (400) where it ends within a character */
  end(): void {
    if (this.rest.length > 0) this.refuse();
  }

  private refuse(): never {
    const message = `line ${this.line} is not UTF-8; save the file as UTF-8 (in Excel: “CSV UTF-8”)`;
    throw new errors.ValidationError(`file: ${message}`, {
      errors: [{ path: ['file'], message, name: 'ValidationError' }],
    });
  }
}

/**
 * Reads a whole file before anything of it is imported.
 * @throws ValidationError (400) that names the first line which is not UTF-8
 */
export const requireUtf8 = async (name: string): Promise<void> => {
  const check = new Utf8Check();
  for await (const chunk of createReadStream(name)) check.add(chunk as Buffer);
  check.end();
};
