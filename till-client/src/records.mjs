const BATCH_KINDS = new Set(['sale', 'refund', 'inventory']);
const KINDS = new Set([...BATCH_KINDS, 'closing']);

/** True if it has its own route. */
export const isKind = (kind) => KINDS.has(kind);

/** True if it may be part of a batch, and be validated. */
export const isBatchKind = (kind) => BATCH_KINDS.has(kind);

/** A record as it goes out: text or bytes as they are, anything else serialised here, once. */
export const bytesOf = (record) => {
  if (ArrayBuffer.isView(record)) {
    return new Uint8Array(record.buffer, record.byteOffset, record.byteLength);
  }
  return new TextEncoder().encode(typeof record === 'string' ? record : JSON.stringify(record));
};

/** The same as text. */
export const textOf = (record) => {
  if (typeof record === 'string') return record;
  if (!ArrayBuffer.isView(record)) return JSON.stringify(record);
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(record);
};

/** A record within another body, its text as it is. */
export const enclose = (kind, text) => `{"kind":${JSON.stringify(kind)},"body":${text}}`;

/** A record's bytes, and those that are kept under its name. */
export const isSame = (one, other) =>
  one.length === other.length && one.every((byte, index) => byte === other[index]);

const NAME = /^(\d{12})\.(sale|refund|inventory|closing)\.json$/;

/** The name of a record that waits; names sort as their numbers do. */
export const nameOf = (number, kind) => `${String(number).padStart(12, '0')}.${kind}.json`;
/** The names that a number can have. */
export const namesOf = (number) => [...KINDS].map((kind) => nameOf(number, kind));
export const isName = (text) => NAME.test(text);
export const numberOf = (name) => Number(NAME.exec(name)[1]);
export const kindOf = (name) => NAME.exec(name)[2];
