import { readDocument } from './support/markdown';

/** What examples/compose/compose.yaml starts. Its processes run without containers in tests/api/worker.test.ts. */

const text = readDocument('examples/compose/compose.yaml');
const [templates = '', services = ''] = text.split(/^services:$/m);

/** The parts of a text whose names stand at this depth. */
const parts = (yaml: string, indent: string): Map<string, string> =>
  new Map(
    yaml
      .split(new RegExp(`^(?=${indent}[\\w-]+:)`, 'm'))
      .map((part): [string, string] => [/^ *([\w-]+):/.exec(part)?.[1] ?? '', part])
  );
const template = parts(templates, '');
const service = parts(services.slice(0, services.search(/^volumes:$/m)), '  ');

it('is two web nodes, two workers, a database and a Redis', () => {
  expect([...service.keys()].filter(Boolean)).toEqual([
    'web-1',
    'web-2',
    'worker-1',
    'worker-2',
    'postgres',
    'redis',
  ]);
  for (const name of ['web-1', 'web-2']) expect(service.get(name)).toContain('*web');
  for (const name of ['worker-1', 'worker-2']) expect(service.get(name)).toContain('*worker');
});

it.each([
  ['web nodes', template.get('x-web')],
  ['workers', template.get('x-worker')],
  ['postgres', service.get('postgres')],
  ['redis', service.get('redis')],
])('has a health check for %s', (_what, part) => {
  expect(part).toMatch(/healthcheck:[^]*test:/);
});

it('asks a worker at the port that it is told to answer on', () => {
  const [, port] = /'--health-port', '(\d+)'/.exec(template.get('x-worker') ?? '') ?? [];
  expect(port).toBeDefined();
  expect(template.get('x-worker')).toContain(`http://127.0.0.1:${port}/health`);
});

it('gives the site’s processes more time to stop than an attempt and a request take', () => {
  const [, seconds] = /stop_grace_period: (\d+)s/.exec(template.get('x-site') ?? '') ?? [];
  expect(Number(seconds)).toBeGreaterThanOrEqual(20);
  for (const name of ['x-web', 'x-worker']) expect(template.get(name)).toContain('<<: *site');
});

it('keeps what BullMQ must not lose to eviction', () => {
  expect(service.get('redis')).toContain("'--maxmemory-policy', 'noeviction'");
});
