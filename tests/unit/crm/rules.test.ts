import { changedKeys, KIND_RULES } from '../../../server/src/crm/rules';
import { relationInput } from '../../../server/src/crm/capture';
import { emailKey } from '../../../server/src/crm/contact-integrity';
import { labelOf } from '../../../server/src/crm/content-types';
import { answersOf } from '../../../server/src/crm/forms';

describe('changedKeys', () => {
  const bookkeeping = new Set(['dates.updated_at']);
  const changed = (before: object, after: object) =>
    changedKeys(
      before as Record<string, unknown>,
      { id: 'x', ...after },
      Object.keys({ ...before, ...after }),
      bookkeeping
    );

  it('compares values, not identities', () => {
    expect(changed({ a: { b: [1] } }, { a: { b: [1] } })).toEqual([]);
    expect(changed({ a: { b: [1] } }, { a: { b: [2] } })).toEqual(['a']);
    expect(changed({ a: undefined }, { a: null })).toEqual([]);
  });

  it('names custom fields one by one, also those that come and go', () => {
    expect(changed({ fields: { a: 1, b: 2 } }, { fields: { b: 3, c: 4 } })).toEqual([
      'fields.a',
      'fields.b',
      'fields.c',
    ]);
    expect(changed({ fields: null }, { fields: {} })).toEqual([]);
  });

  it('overlooks dates that follow another change', () => {
    expect(changed({ dates: { updated_at: 1 } }, { dates: { updated_at: 2 } })).toEqual([]);
    expect(changed({ dates: { trashed_at: null } }, { dates: { trashed_at: 2 } })).toEqual([
      'dates',
    ]);
  });
});

describe('possible events', () => {
  const touching = (
    action: 'create' | 'update' | 'delete',
    keys: string[] | null,
    tags = false
  ) => ({
    action,
    keys: keys && new Set(keys),
    tags,
  });
  it.each([
    ['contact', touching('update', ['phone']), ['contact.updated']],
    [
      'contact',
      touching('update', ['status']),
      ['contact.updated', 'contact.subscribed', 'contact.unsubscribed'],
    ],
    ['contact', touching('update', [], true), ['contact.tagged', 'contact.untagged']],
    ['contact', touching('update', []), []],
    ['contact', touching('delete', null), ['contact.deleted']],
    ['deal', touching('update', ['value']), ['deal.updated']],
    ['deal', touching('update', ['stage_id']), ['deal.updated', 'deal.stage_changed']],
    ['task', touching('update', ['title']), []],
    ['task', touching('delete', null), []],
    ['company', touching('update', []), []],
  ] as const)('%s %j', (kind, write, events) => {
    expect(KIND_RULES[kind]?.possible(write)).toEqual(events);
  });
});

describe('events of a change', () => {
  type Payload = Record<string, unknown>;
  const namesOf = (kind: 'contact' | 'deal' | 'task', before: Payload | null, after: Payload) =>
    KIND_RULES[kind]
      ?.derive({
        before: before && { payload: before, keys: Object.keys(before), tags: null },
        after: { payload: { id: 'x', ...after }, tags: null },
        origin: () => ({ type: 'api' }) as never,
        bookkeeping: new Set(),
      })
      .map(({ event }) => event);

  it.each([
    ['contact', null, { status: 'subscribed' }, ['contact.created', 'contact.subscribed']],
    ['contact', { status: 'subscribed', phone: null }, { status: 'subscribed', phone: '1' }, 1],
    ['contact', { status: 'pending' }, { status: 'subscribed' }, 2],
    ['contact', { status: 'subscribed' }, { status: 'unsubscribed' }, 2],
    // The write cannot have touched what was not read.
    ['contact', { phone: null }, { status: 'subscribed', phone: '1' }, 1],
    ['deal', null, { status: 'won' }, ['deal.created', 'deal.won']],
    ['deal', { status: 'won', value: 1 }, { status: 'won', value: 2 }, 1],
    ['deal', { status: 'open' }, { status: 'lost' }, 2],
    ['deal', { stage_id: 1 }, { stage_id: 1, value: 2 }, 0],
    ['deal', { stage_id: 1 }, { stage_id: 2 }, ['deal.updated', 'deal.stage_changed']],
    ['task', { status: 'done' }, { status: 'done' }, 0],
    ['task', { status: 'open' }, { status: 'done' }, ['task.completed']],
  ] as const)('%s from %j to %j', (kind, before, after, expected) => {
    const names = namesOf(kind, before, after);
    if (typeof expected === 'number') expect(names).toHaveLength(expected);
    else expect(names).toEqual(expected);
  });
});

describe('relationInput', () => {
  it.each([
    [null, { replaces: true, ids: [] }],
    [5, { replaces: true, ids: [5] }],
    [[1, { id: 2 }], { replaces: true, ids: [1, 2] }],
    [{ id: 3 }, { replaces: true, ids: [3] }],
    [{ set: [{ id: 4 }] }, { replaces: true, ids: [4] }],
    [{ set: null }, { replaces: true, ids: [] }],
    [
      { connect: [{ id: 1 }], disconnect: [2] },
      { replaces: false, ids: [1, 2] },
    ],
    [{ connect: { id: 1 } }, { replaces: false, ids: [1] }],
  ])('%j', (input, expected) => {
    expect(relationInput(input)).toEqual(expected);
  });
});

it('tells addresses apart as people do: by neither case nor spaces, but by accents', () => {
  expect(emailKey(' Ada@Example.test ')).toBe(emailKey('ada@example.test'));
  expect(emailKey('josé@example.test')).not.toBe(emailKey('jose@example.test'));
  expect(emailKey('')).toBeNull();
  expect(emailKey(null)).toBeNull();
});

it('answers with what a visitor filled in and nothing else', () => {
  const attributes = {
    mail: { type: 'email' },
    visitDate: { type: 'date' },
    secret: { type: 'password' },
    internal: { type: 'string', private: true },
    owner: { type: 'relation', target: 'admin::user' },
    createdAt: { type: 'datetime' },
    documentId: { type: 'string' },
  };
  const values = { mail: 'a', secret: 'b', internal: 'c', owner: { id: 1 }, createdAt: 'd' };
  expect(answersOf(values, attributes)).toEqual([
    { id: 'mail', label: 'Mail', type: 'email', value: 'a' },
    { id: 'visitDate', label: 'Visit date', type: 'date', value: null },
  ]);
  expect(labelOf('first_name')).toBe('First name');
});
