import type { Steps } from '../../runtime/event-loop';
import {
  firstRepeated,
  formatPath,
  type JsonPart,
  type JsonPath,
  type JsonValue,
  outlineSteps,
  type Read,
  readText,
  refuse,
  type Refused,
  strictJsonSteps,
} from './strict-json';
import { REQUIRED_FIELDS } from './schemas';
import { type AskingKind, LIMITS, nodesWithin, RECORD_KINDS, type RecordKind } from './records';

/** A record within another body. */
export interface Enclosed {
  kind: RecordKind;
  /** The bytes of its `body` exactly as they were sent. */
  body: Buffer;
}

/** The fields by which a body shows its route. A catalogue request needs none. */
const TELLING: Readonly<Record<string, readonly string[]>> = {
  ...REQUIRED_FIELDS,
  batch: ['records'],
  validate: ['kind', 'body'],
  status: ['external_ids'],
};

/** Refuses a body that is complete for another route, as the path is not signed. docs/contract-pos.md#one-body-one-route */
const refuseOtherRoute = (route: AskingKind, keys: readonly string[]): Refused | null => {
  const other = Object.entries(TELLING).find(
    ([kind, fields]) => kind !== route && fields.every((field) => keys.includes(field))
  );
  if (!other) return null;
  const rule = `must not be here: the body has every required field of what is sent to /${other[0]}`;
  return refuse(other[1][0] as string, rule);
};

/** Members that each body is known by. */
const KNOWN = { batch: 1, validate: 2, status: 1, catalogue: 2, record: 2 } as const;
const mostMembers = (of: keyof typeof KNOWN): number => KNOWN[of] + LIMITS.otherMembers;

/** A body, or a record within one, has too many members, or one of them twice. */
const faultOf = (of: keyof typeof KNOWN, keys: readonly string[], path: JsonPath = []) => {
  if (keys.length > mostMembers(of)) {
    return refuse(formatPath(path), `must have at most ${mostMembers(of)} members`);
  }
  const twice = firstRepeated(keys);
  return twice < 0 ? null : refuse(formatPath([...path, keys[twice]!]), 'must not appear twice');
};

const keysOf = (members: readonly JsonPart[]): string[] => members.map(({ key }) => key);

/** The members of a body whose parts are read one by one; none of them twice. */
function* envelopeSteps(route: 'batch' | 'validate', bytes: Uint8Array): Steps<Read<JsonPart[]>> {
  const read = readText(bytes);
  if (!read.ok) return read;
  // One more each than there may be: the members, the records among them, and the members of those.
  const most = [mostMembers(route) + 1, LIMITS.batch + 1, mostMembers('record') + 1];
  const body = yield* outlineSteps(read.value, most);
  if (!body) return refuse('body', 'must be valid JSON');
  if (!body.text.startsWith('{')) return refuse('body', 'must be a JSON object');
  const { parts: members } = body;
  const keys = keysOf(members);
  return faultOf(route, keys) ?? refuseOtherRoute(route, keys) ?? { ok: true, value: members };
}

const memberOf = (members: readonly JsonPart[], wanted: string): JsonPart | undefined =>
  members.find(({ key }) => key === wanted);

/** @param path path of the members: '' for the body itself, otherwise with a dot at its end */
const enclosedOf = (members: readonly JsonPart[], path: string): Read<Enclosed> => {
  const kind = memberOf(members, 'kind');
  const body = memberOf(members, 'body');
  if (!kind) return refuse(`${path}kind`, 'is required');
  const value: unknown = /^[{[]/.test(kind.text) ? null : JSON.parse(kind.text);
  const known = RECORD_KINDS.find((one) => one === value);
  if (!known) return refuse(`${path}kind`, `must be one of: ${RECORD_KINDS.join(', ')}`);
  if (!body) return refuse(`${path}body`, 'is required');
  return { ok: true, value: { kind: known, body: Buffer.from(body.text, 'utf8') } };
};

const entryOf = ({ text, parts: members }: JsonPart, index: number): Read<Enclosed> => {
  const path = `records[${index}]`;
  if (!text.startsWith('{')) return refuse(path, 'must be a JSON object');
  return faultOf('record', keysOf(members), ['records', index]) ?? enclosedOf(members, `${path}.`);
};

/** Unknown fields next to the records are accepted, as long as no key stands twice in them. */
function* findRepeated(members: readonly JsonPart[]): Steps<Refused | null> {
  for (const { key, text } of members) {
    if (key === 'records') continue;
    const bytes = Buffer.from(text, 'utf8');
    const read = yield* strictJsonSteps(bytes, LIMITS.depth - 1, nodesWithin(LIMITS.bodyBytes));
    if (!read.ok) return refuse(formatPath([key]), 'must be JSON without duplicate keys');
  }
  return null;
}

/** Parses a batch (docs/tills.md#offline-tills-and-batches) into records or their errors; the envelope's refuses all. */
export function* batchSteps(bytes: Uint8Array): Steps<Read<Read<Enclosed>[]>> {
  const envelope = yield* envelopeSteps('batch', bytes);
  if (!envelope.ok) return envelope;
  const records = memberOf(envelope.value, 'records');
  if (!records) return refuse('records', 'is required');
  if (!records.text.startsWith('[')) return refuse('records', 'must be a list');
  if (records.parts.length === 0) return refuse('records', 'must not be empty');
  if (records.parts.length > LIMITS.batch) {
    return refuse('records', `must have at most ${LIMITS.batch} entries`);
  }
  const repeated = yield* findRepeated(envelope.value);
  if (repeated) return repeated;
  const entries: Read<Enclosed>[] = [];
  for (const [index, part] of records.parts.entries()) {
    entries.push(entryOf(part, index));
    yield;
  }
  return { ok: true, value: entries };
}

/** Reads the body of `POST /validate` (docs/tills.md#trying-a-record). Never throws. */
export function* validationSteps(bytes: Uint8Array): Steps<Read<Enclosed>> {
  const envelope = yield* envelopeSteps('validate', bytes);
  return envelope.ok ? enclosedOf(envelope.value, '') : envelope;
}

function* fieldSteps(
  route: 'status' | 'catalogue',
  bytes: Uint8Array
): Steps<Read<Readonly<Record<string, JsonValue>>>> {
  const read = yield* strictJsonSteps(bytes, LIMITS.depth, nodesWithin(LIMITS.bodyBytes));
  if (!read.ok) return read;
  const { value } = read;
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    return refuse('body', 'must be a JSON object');
  }
  const keys = Object.keys(value);
  return faultOf(route, keys) ?? refuseOtherRoute(route, keys) ?? { ok: true, value };
}

/** The pattern of a record's id, as in the published schemas. */
export const IDENTIFIER = /^[^\p{Cc}\p{Surrogate}]{1,128}$/u;

/** Reads the body of `POST /status`, step by step: ids in the order asked. Never throws. */
export function* statusSteps(bytes: Uint8Array): Steps<Read<string[]>> {
  const fields = yield* fieldSteps('status', bytes);
  if (!fields.ok) return fields;
  const { external_ids: ids } = fields.value;
  if (ids === undefined) return refuse('external_ids', 'is required');
  if (!Array.isArray(ids)) return refuse('external_ids', 'must be a list');
  if (ids.length > LIMITS.statusIds) {
    return refuse('external_ids', `must have at most ${LIMITS.statusIds} entries`);
  }
  const wrong = ids.findIndex((id) => typeof id !== 'string' || !IDENTIFIER.test(id));
  if (wrong < 0) return { ok: true, value: ids as string[] };
  const rule = `must be an id of 1 to ${LIMITS.idLength} characters without control characters`;
  return refuse(`external_ids[${wrong}]`, rule);
}

export interface CatalogueRequest {
  /** As an answer gave it; null: from the beginning. */
  cursor: string | null;
  limit: number;
}

const DEFAULT_ITEMS = 500;

/** Reads the body of `POST /catalogue`, step by step; its cursor is not looked into. Never throws. */
export function* catalogueSteps(bytes: Uint8Array): Steps<Read<CatalogueRequest>> {
  const fields = yield* fieldSteps('catalogue', bytes);
  if (!fields.ok) return fields;
  const { cursor, limit = DEFAULT_ITEMS } = fields.value;
  if (cursor !== undefined && typeof cursor !== 'string') {
    return refuse('cursor', 'must be the unchanged cursor of a previous answer, or be left out');
  }
  const isWhole = typeof limit === 'number' && Number.isInteger(limit);
  if (!isWhole || limit < 1 || limit > LIMITS.catalogueItems) {
    return refuse('limit', `must be a whole number from 1 to ${LIMITS.catalogueItems}`);
  }
  return { ok: true, value: { cursor: cursor ?? null, limit } };
}
