import { continueSpell, healthState, type Spell } from '../../../server/src/webhooks/rules/failing';

const FRESH: Spell = { attempted: false, unwellSince: null };
const failed = (at: number) => ({ ok: false, at });
const sent = (at: number) => ({ ok: true, at });

test('a webhook is new until its first attempt', () => {
  expect(healthState(true, FRESH)).toBe('new');
  expect(healthState(true, continueSpell(FRESH, []))).toBe('new');
});

test('the last attempt decides', () => {
  expect(healthState(true, continueSpell(FRESH, [failed(1), sent(2)]))).toBe('healthy');
  expect(healthState(true, continueSpell(FRESH, [sent(1), failed(2)]))).toBe('failing');
});

test('it fails since the first failure after the last success', () => {
  const spell = continueSpell(FRESH, [failed(1), sent(2), failed(3), failed(4)]);
  expect(spell.unwellSince).toBe(3);
  expect(continueSpell(spell, [failed(5)]).unwellSince).toBe(3);
});

test('off wins', () => {
  expect(healthState(false, continueSpell(FRESH, [failed(1)]))).toBe('off');
  expect(healthState(false, FRESH)).toBe('off');
});
