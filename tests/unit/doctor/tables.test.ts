import type { App } from '../../../server/src/app';
import { tables } from '../../../server/src/doctor';

const expected = Array.from(
  { length: 50 },
  (_, at) => `switchboard_${String(at).padStart(2, '0')}`
);

const siteWith = (present: readonly string[]): App =>
  ({
    strapi: {
      contentTypes: {},
      db: { dialect: { schemaInspector: { getTables: () => Promise.resolve(present) } } },
    },
  }) as unknown as App;

it.each([
  ['all are there', expected, 'all 50 tables are there'],
  ['the site was never started', ['strapi_users'], 'none of the 50 tables exists yet'],
  ['one is missing', expected.slice(1), '1 of 50 tables are missing: switchboard_00'],
  [
    'many are missing',
    expected.slice(7),
    '7 of 50 tables are missing: switchboard_00, switchboard_01, switchboard_02, switchboard_03, switchboard_04 and 2 more',
  ],
])('says in a short line which tables there are: %s', async (_what, present, message) => {
  const result = await tables(() => expected)(siteWith(present));
  expect(result?.message).toBe(message);
});
