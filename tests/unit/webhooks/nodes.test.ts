import type { App } from '../../../server/src/app';
import {
  type AddressFacts,
  judgeNodes,
  leaveNodes,
  type NodeRow,
  prepareNodes,
} from '../../../server/src/webhooks/nodes';
import { subscribersOf } from '../../../server/src/webhooks/subscriptions';

const SECOND = 1000;
const NOW = 100 * SECOND;

const facts = (given: string, open: boolean, allowed: string[] = []): AddressFacts => ({
  open,
  why: given,
  nodeEnv: { given },
  allowed,
});

const node = (
  said: AddressFacts,
  { ago = 0, stopped = false }: { ago?: number; stopped?: boolean } = {}
): NodeRow => ({
  facts: JSON.stringify(said),
  seen_at: String(NOW - ago),
  stopped_at: stopped ? NOW - ago : null,
});

const develop = facts('development', true);
const live = facts('production', false);

describe('what a command goes by', () => {
  it.each<[string, NodeRow[], unknown]>([
    ['nothing where no node ever said anything', [], null],
    ['the node that runs', [node(develop)], { ...develop, from: 'running' }],
    [
      'the node that refuses, whichever started last',
      [node(develop), node(live, { ago: 5 * SECOND })],
      { ...live, from: 'running' },
    ],
    [
      'a node that runs before one that stopped later',
      [node(develop, { ago: 20 * SECOND }), node(live, { ago: 5 * SECOND, stopped: true })],
      { ...develop, from: 'running' },
    ],
    [
      'no node that was silent for half a minute',
      [node(develop), node(live, { ago: 30 * SECOND })],
      { ...develop, from: 'running' },
    ],
    [
      'the last that stopped where none runs',
      [node(develop, { ago: 5 * SECOND, stopped: true }), node(live, { ago: 50 * SECOND })],
      { ...develop, from: 'stopped' },
    ],
    [
      'the networks that each node allows',
      [
        node(facts('production', false, ['10.0.0.0/8', '127.0.0.0/8'])),
        node(facts('production', false, ['127.0.0.0/8']), { ago: 5 * SECOND }),
        node(develop, { ago: 5 * SECOND }),
      ],
      { ...facts('production', false, ['127.0.0.0/8']), from: 'running' },
    ],
  ])('is %s', (_name, said, expected) => {
    expect(judgeNodes(said, 'site', NOW)).toEqual(expected);
  });
});

it('in a copied database nodes of the original say nothing', () => {
  const of = (row: NodeRow, site_instance: string): NodeRow => ({ ...row, site_instance });
  const original = of(node(live), 'original');
  for (const own of [of(node(develop), 'copy'), node(develop)]) {
    expect(judgeNodes([original, own], 'copy', NOW)).toEqual({ ...develop, from: 'running' });
  }
  expect(judgeNodes([original], 'copy', NOW)).toBeNull();
});

describe('a node that stops', () => {
  it('says so last, also where it is just saying that it runs', async () => {
    const said: NodeRow[] = [];
    let slowly: Promise<void> = Promise.resolve();
    const rows = {
      insert: (row: NodeRow) => ({
        onConflict: () => ({
          merge: async () => {
            await slowly;
            said.push(row);
          },
        }),
      }),
      where: () => rows,
      orWhereNotNull: () => rows,
      pluck: async () => [],
      whereIn: () => ({ delete: async () => 0 }),
    };
    const parts = new Map<unknown, unknown>();
    const app = {
      part(make: (app: unknown) => unknown) {
        if (!parts.has(make)) parts.set(make, make(app));
        return parts.get(make);
      },
      options: { webhooks: { allowPrivateNetworks: false } },
      strapi: { config: { get: () => undefined } },
      site: { instance: 'site' },
      clock: { now: () => NOW, sync: async () => {} },
      db: { pool: { table: () => rows } },
    } as unknown as App;
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick'] });
    let finish = (): void => {};
    try {
      await prepareNodes(app);
      slowly = new Promise((resolve) => (finish = resolve));
      jest.advanceTimersByTime(60 * SECOND);
    } finally {
      jest.useRealTimers();
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
    slowly = Promise.resolve();
    const left = leaveNodes(app);
    await new Promise((resolve) => setTimeout(resolve, 20));
    finish();
    await left;
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(said.map(({ stopped_at: at }) => at).at(-1)).toBe(NOW);
    expect(subscribersOf(app).isTrusted).toBe(false);
  });
});
