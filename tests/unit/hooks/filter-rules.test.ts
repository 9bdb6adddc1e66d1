import {
  daysRules,
  eventsRules,
  payloadRules,
  requestRules,
} from '../../../server/src/hooks/filter-rules';
import { Filter } from '../../../server/src/hooks';
import type { PayloadFilterValue, RequestFilterValue } from '../../../server/src/hooks/types';
import { eventData } from '../../../server/src/webhooks/publish';

/* eslint-disable @typescript-eslint/no-explicit-any -- handlers that return what they must not */

const webhook = { id: 1, name: 'r' } as unknown as PayloadFilterValue['webhook'];
const given = () => ({ payload: { a: 1 }, event: 'x.y', webhook });

const payloadHook = () => {
  const lines: string[] = [];
  const log = { error: (line: string) => void lines.push(line) };
  const hook = new Filter<PayloadFilterValue | null>('f', log, payloadRules, { deadlineMs: 50 });
  return { hook, lines };
};

describe('service_crm_webhook_payload', () => {
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;

  it.each<[string, (value: any) => unknown]>([
    ['nothing', () => undefined],
    ['a string', () => 'gone'],
    ['a list', () => []],
    ['the bare payload', (value) => value.payload],
    ['an empty object', () => ({})],
    ['a payload that is a list', (value) => ({ ...value, payload: [1] })],
    ['a payload that is text', (value) => ({ ...value, payload: 'x' })],
    ['a cycle', (value) => ({ ...value, payload: cyclic })],
    ['a BigInt', (value) => ({ ...value, payload: { n: 1n } })],
    ['a toJSON of nothing', (value) => ({ ...value, payload: { toJSON: () => undefined } })],
  ])('a handler that returns %s is named and left out, the others apply', async (_what, wrong) => {
    const { hook, lines } = payloadHook();
    hook.register((value: any) => ({ ...value, payload: { ...value.payload, before: true } }));
    hook.register(function addVatNumber(value: any) {
      const returned = wrong(value);
      value.payload.spoilt = true;
      return returned as never;
    });
    hook.register((value: any) => {
      value.payload.after = true;
      return value;
    });
    expect(await hook.call(given())).toEqual({
      payload: { a: 1, before: true, after: true },
      event: 'x.y',
      webhook,
    });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('(addVatNumber)');
  });

  it.each([
    ['the whole value', () => null],
    ['the payload', (value: any) => ({ ...value, payload: null })],
  ])('null for %s skips the webhook', async (_what, skip) => {
    const { hook, lines } = payloadHook();
    hook.register(skip);
    expect(await hook.call(given())).toBeNull();
    expect(lines).toEqual([]);
  });

  it('nobody changes which event it is, or for whom', async () => {
    const { hook } = payloadHook();
    hook.register((value: any) => ({ payload: value.payload, event: 'z', webhook: null }) as never);
    expect(await hook.call(given())).toEqual(given());
  });
});

describe('the other filters', () => {
  const request = { args: { url: 'https://a', headers: { A: '1' } }, event: 'x', webhook };

  it.each<[unknown]>([
    [null],
    ['x'],
    [{}],
    [{ args: null }],
    [{ args: { url: 5, headers: {} } }],
    [{ args: { url: 'https://b', headers: ['x'] } }],
  ])('request_args: %j is left out', (returned) => {
    const handed = requestRules.prepare(request as RequestFilterValue);
    expect(() => requestRules.accept(returned, handed)).toThrow(/left out/);
  });

  it('request_args: a header without a text is refused here, and numbers become text', () => {
    const handed = requestRules.prepare(request as RequestFilterValue);
    const withHeader = (value: unknown) => ({ args: { url: 'https://a', headers: { A: value } } });
    expect(() => requestRules.accept(withHeader(Object.create(null)), handed)).toThrow(TypeError);
    expect(requestRules.accept(withHeader(5), handed).args.headers).toEqual({ A: '5' });
    expect(requestRules.accept(withHeader(null), handed).args.headers).toEqual({ A: null });
  });

  it('events: no map is left out; days: only a number above 0', () => {
    for (const wrong of [null, [], 'x', 5]) {
      expect(() => eventsRules.accept(wrong, {})).toThrow(/instead of the map/);
    }
    for (const wrong of [null, 0, -1, Number.NaN, Infinity, '5', {}]) {
      expect(() => daysRules.accept(wrong, 30)).toThrow(/left out/);
    }
    expect(daysRules.accept(5, 30)).toBe(5);
    expect(daysRules.accept(undefined, 30)).toBe(30);
  });
});

describe('the data of an event', () => {
  it.each([[null], [[1]], ['x'], [5], [true], [new Date(0)], [new Map()], [new Set()], [() => 1]])(
    '%p is refused',
    (data) => expect(() => eventData('x.y', data)).toThrow(/"x.y" must be an object/)
  );

  it('is an object, or nothing', () => {
    expect(eventData('x', undefined)).toEqual({});
    const data = { a: 1 };
    expect(eventData('x', data)).toBe(data);
    expect(eventData('x', { toJSON: () => ({ b: 2 }) })).toEqual({ b: 2 });
  });
});
