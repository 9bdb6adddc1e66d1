import path from 'node:path';
import { addBasicAuthentication } from '../../../server/src/access/basic-authentication';
import type { FailedAttempts } from '../../../server/src/access/failed-attempts';
import { hashApplicationPassword } from '../../../server/src/access/application-passwords';

// The host's own chain of strategies. Not among the package's exports, so loaded by its file.
const hostFile = path.join(
  path.dirname(require.resolve('@strapi/core/package.json')),
  'dist/services/auth/index.js'
);
// eslint-disable-next-line @typescript-eslint/no-require-imports
const createHost = require(hostFile) as () => {
  register(type: string, strategy: unknown): unknown;
  authenticate(ctx: unknown, next: () => unknown): Promise<unknown>;
};

const USER = { id: 7, email: 'Ada@example.test', isActive: true, blocked: false, password: 'x' };
const PASSWORD = 'abcd efgh';

const setUp = (user: Record<string, unknown> = USER) => {
  const host = createHost();
  // As users-permissions does for every request without a Bearer token.
  host.register('content-api', {
    name: 'public',
    authenticate: async () => ({ authenticated: true, credentials: null }),
  });
  const charged: unknown[] = [];
  let wait: number | null = null;
  const charge: FailedAttempts['charge'] = async ({ client }) => {
    charged.push(client);
    return wait;
  };
  const touched: unknown[] = [];
  const findByPassword = async (typed: string) =>
    hashApplicationPassword(typed, 's') === hashApplicationPassword(PASSWORD, 's')
      ? { id: 1, userId: 7, lastUsedAt: null }
      : null;
  const findOne = jest.fn(async () => user);
  const services: Record<string, unknown> = {
    'plugin::switchboard.application-passwords': {
      findByPassword,
      touch: async (password: unknown) => touched.push(password),
    },
    'admin::permission': { engine: { generateUserAbility: async () => ({ can: () => true }) } },
  };
  const strapi = {
    get: () => host,
    service: (uid: string) => services[uid],
    db: { query: () => ({ findOne }) },
  };
  addBasicAuthentication({ strapi } as never, { charge } as never);

  const ask = async (authorization: string | undefined, route: Record<string, unknown> = {}) => {
    const state: Record<string, unknown> = {
      route: {
        info: { type: 'content-api', pluginName: 'switchboard' },
        config: { auth: { scope: ['plugin::switchboard.webhooks.find'] } },
        ...route,
      },
    };
    const headers: Record<string, string> = {};
    let refused: unknown = null;
    let passed = false;
    const ctx = {
      state,
      request: { headers: { authorization }, header: { authorization }, ip: '203.0.113.5' },
      set: (name: string, value: string) => (headers[name] = value),
      unauthorized: (error: unknown) => (refused = error),
    };
    await host.authenticate(ctx, () => (passed = true));
    const auth = state.auth as { strategy: { name: string }; credentials: unknown } | undefined;
    return { passed, refused, headers, strategy: auth?.strategy.name, who: auth?.credentials };
  };
  return { ask, charged, touched, findOne, limit: (seconds: number) => (wait = seconds) };
};

const basic = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

describe('Basic beside a strategy that was registered earlier and says yes to everybody', () => {
  it('is asked first, so that the user is known and not "the public"', async () => {
    const { ask, charged, touched } = setUp();
    const answer = await ask(basic('ada@EXAMPLE.test', 'abcdefgh'));
    expect(answer).toMatchObject({ passed: true, strategy: 'switchboard-basic' });
    expect(answer.who).toMatchObject({ id: 7 });
    expect(answer.who).not.toHaveProperty('password');
    expect(charged).toEqual([]);
    expect(touched).toHaveLength(1);
  });

  it.each([
    ['a wrong password', basic(USER.email, 'wrong')],
    ['a right password with another address', basic('eve@example.test', PASSWORD)],
    ['nonsense', 'Basic nonsense'],
    ['nothing', 'basic'],
  ])('refuses %s instead of passing it on', async (_what, header) => {
    const { ask, charged, touched } = setUp();
    const answer = await ask(header);
    expect(answer.passed).toBe(false);
    expect(answer.refused).toMatchObject({ name: 'UnauthorizedError' });
    expect(charged).toEqual(['203.0.113.5']);
    expect(touched).toEqual([]);
  });

  it.each([
    ['is blocked', { ...USER, blocked: true }],
    ['is not active', { ...USER, isActive: false }],
    ['is gone', null],
  ])('refuses a user who %s', async (_what, user) => {
    const { ask } = setUp(user as never);
    expect((await ask(basic(USER.email, PASSWORD))).passed).toBe(false);
  });

  it('looks no user up before the password is right, so an address betrays itself in no way', async () => {
    const { ask, findOne } = setUp();
    await ask(basic(USER.email, 'wrong'));
    expect(findOne).not.toHaveBeenCalled();
  });

  it('answers 429 with the time to wait once an address has failed too often', async () => {
    const { ask, limit } = setUp();
    limit(42);
    await expect(ask(basic(USER.email, 'wrong'))).rejects.toMatchObject({ name: 'RateLimitError' });
    expect((await ask(basic(USER.email, PASSWORD))).passed).toBe(true);
  });
});

describe('what is not for us', () => {
  it.each([
    ['a Bearer token', 'Bearer abc', {}],
    ['no header', undefined, {}],
    [
      'a Basic header on another plugin’s route',
      'Basic abc',
      { info: { type: 'content-api', pluginName: 'other' } },
    ],
    [
      'a Basic header on the site’s route',
      'Basic abc',
      { info: { type: 'content-api', apiName: 'x' } },
    ],
  ])('goes its usual way: %s', async (_what, header, route) => {
    const { ask, charged } = setUp();
    expect(await ask(header, route)).toMatchObject({ passed: true, strategy: 'public' });
    expect(charged).toEqual([]);
  });

  it('includes our routes without authentication, such as those of the tills', async () => {
    const { ask, charged } = setUp();
    const answer = await ask('Basic abc', { config: { auth: false } });
    expect(answer).toMatchObject({ passed: true, strategy: undefined });
    expect(charged).toEqual([]);
  });
});
