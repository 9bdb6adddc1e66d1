import { HEADER_LIMITS, KEPT_VALUE } from '../../../../shared/contracts/webhooks';
import { type Refusal, refusal } from '../../runtime/refusal';

/**
 * Headers of a webhook's own; docs/contract-webhooks.md#headers-of-its-own. The owner chooses any but
 * those that say what is posted, by whom, and how the connection goes.
 */
const RESERVED =
  /^(?:host|content-.*|x-service-.*|webhook-.*|transfer-encoding|connection|keep-alive|proxy-.*|te|trailer|upgrade|expect)$/i;

/** A token of RFC 9110. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;

/** Text of one byte a character; line breaks and other control characters end headers. */
const VALUE = /^[\x20-\x7e\xa0-\xff]*$/;

/** Echoes of less are found everywhere. */
const SHORTEST_ECHO = 8;

/** A problem of one header; `name` is null if it is about all of them. */
export interface HeaderProblem {
  name: string | null;
  wrong: Refusal;
}

const isName = (name: string): boolean =>
  TOKEN.test(name) && name.length <= HEADER_LIMITS.name && name !== '__proto__';

/** As a message may show it. */
const shown = (name: string): string => name.slice(0, 64).replace(/[^\x20-\x7e]/g, '?');

const judgeOne = (name: string, value: string): Refusal | null => {
  const values = { name: shown(name) };
  if (!isName(name)) return refusal('is no name of a header', 'header_name', values);
  if (RESERVED.test(name)) {
    return refusal('is set by the site and cannot be replaced', 'header_reserved', values);
  }
  if (value.trim() === '') return refusal('must have a value', 'header_value', values);
  if (value.length > HEADER_LIMITS.value) {
    return refusal(`must have at most ${HEADER_LIMITS.value} characters`, 'header_value', values);
  }
  return VALUE.test(value)
    ? null
    : refusal(
        'must be text of Latin-1 without line breaks and other control characters',
        'header_value',
        values
      );
};

/** The problems of a user's headers. */
export const judgeHeaders = (headers: Readonly<Record<string, string>>): HeaderProblem[] => {
  const entries = Object.entries(headers);
  const { most, total } = HEADER_LIMITS;
  if (entries.length > most) {
    const wrong = refusal(`must be at most ${most}`, 'too_many', { maximum: most });
    return [{ name: null, wrong }];
  }
  const problems: HeaderProblem[] = [];
  const seen = new Set<string>();
  for (const [name, value] of entries) {
    const lower = name.toLowerCase();
    const wrong = seen.has(lower)
      ? refusal('is named twice; upper and lower case are one name', 'named_twice')
      : judgeOne(name, value);
    seen.add(lower);
    if (wrong) problems.push({ name: shown(name), wrong });
  }
  const length = entries.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  if (problems.length === 0 && length > total) {
    const message = `must have at most ${total} characters together`;
    problems.push({ name: null, wrong: refusal(message, 'headers_large', { maximum: total }) });
  }
  return problems;
};

const has = (names: readonly string[], name: string): boolean =>
  names.some((one) => one.toLowerCase() === name.toLowerCase());

/** The names whose values stay as they are: `***` stands for what is not shown. */
export const keptNames = (given: Readonly<Record<string, string>>): string[] =>
  Object.entries(given).flatMap(([name, value]) => (value.trim() === KEPT_VALUE ? [name] : []));

/** Refuses to keep the value of a header that the webhook does not have. */
export const judgeKept = (
  given: Readonly<Record<string, string>>,
  present: readonly string[]
): Refusal | null => {
  const name = keptNames(given).find((one) => !has(present, one));
  return name === undefined
    ? null
    : refusal(
        `${name} is ${KEPT_VALUE}, which keeps a value that is there, and there is none`,
        'header_unknown',
        { name }
      );
};

/**
 * The posted headers: the webhook's own, unless a hook gave one of that name.
 * @param free what hooks left of the headers that are theirs to decide
 */
export const withOwnHeaders = (
  free: Record<string, string>,
  own: Readonly<Record<string, string>>
): Record<string, string> => {
  const names = Object.keys(free);
  const added = Object.entries(own).filter(([name]) => !has(names, name));
  return { ...free, ...Object.fromEntries(added) };
};

/** The values, and what follows the scheme in one such as `Bearer …`; as JSON has them, too. */
const traces = (own: Readonly<Record<string, string>>): string[] => {
  const texts = Object.values(own).flatMap((value) => {
    const credential = /^\S+\s+(\S.*)$/.exec(value)?.[1];
    return credential === undefined ? [value] : [value, credential];
  });
  const forms = texts.flatMap((text) => [text, JSON.stringify(text).slice(1, -1)]);
  return [...new Set(forms)].filter((text) => text.length >= SHORTEST_ECHO);
};

/** Takes the values of own headers out of what a receiver answered: some answer what they were sent. */
export const hideEchoes = (own: Readonly<Record<string, string>>): ((text: string) => string) => {
  const found = traces(own);
  return (text) => found.reduce((left, trace) => left.replaceAll(trace, KEPT_VALUE), text);
};
