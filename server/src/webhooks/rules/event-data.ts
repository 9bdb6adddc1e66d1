import { types } from 'node:util';

const kindOf = (value: unknown): string => {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value !== 'object') return `a ${typeof value}`;
  return `a ${(value as { constructor?: { name?: string } }).constructor?.name ?? 'thing'}`;
};

/** Whether JSON writes it as an object of its fields: no list, no `Map`, no boxed primitive. */
const isObject = (value: unknown): value is object =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  !types.isMap(value) &&
  !types.isSet(value) &&
  !types.isBoxedPrimitive(value);

/**
 * The `data` of an event: an object (docs/contract-webhooks.md#envelope); `{}` where none was given. What
 * has a `toJSON` is taken by what that gives, as JSON does.
 * @throws TypeError that names what was given instead
 */
export const eventData = (event: string, given: unknown): object => {
  const { toJSON } = (given ?? {}) as { toJSON?: unknown };
  const data: unknown =
    typeof toJSON === 'function' ? (toJSON as () => unknown).call(given) : (given ?? undefined);
  if (given === undefined) return {};
  if (isObject(data)) return data;
  throw new TypeError(
    `The data of ${JSON.stringify(event)} must be an object, not ${kindOf(given)}.`
  );
};

/**
 * An event's data as JSON.
 * @throws TypeError where it is no object in JSON, or cannot be written: a cycle, a `BigInt`
 */
export const jsonOf = (data: unknown): string => {
  const text = JSON.stringify(data) as string | undefined;
  if (text?.startsWith('{')) return text;
  throw new TypeError(`it is ${kindOf(data)}, and no object in JSON`);
};
