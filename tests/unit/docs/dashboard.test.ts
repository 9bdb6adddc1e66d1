import { readFileSync } from 'node:fs';
import path from 'node:path';
import { recordMetrics } from '../../../server/src/pos/processing/record-store';
import { webhookMetrics } from '../../../server/src/webhooks/figures/health';
import { ROOT } from '../../support/paths';
import { readDocument } from './support/markdown';

interface Dashboard {
  panels: { title: string; targets: { expr: string }[] }[];
}

const dashboard = JSON.parse(
  readFileSync(path.join(ROOT, 'examples/grafana/switchboard.json'), 'utf8')
) as Dashboard;

const known = [...webhookMetrics.metrics, ...recordMetrics.metrics];

const namesIn = (text: string): string[] => [
  ...new Set([...text.matchAll(/switchboard_[a-z_]+/g)].map(([name]) => name)),
];

const isKnown = (name: string): boolean =>
  known.some((one) =>
    one.type === 'histogram' ? name === `${one.name}_bucket` : name === one.name
  );

describe('the dashboard in examples/grafana', () => {
  it.each(dashboard.panels.map(({ title, targets }) => [title, targets] as const))(
    'asks for metrics that there are: %s',
    (_title, targets) => {
      expect(targets.length).toBeGreaterThan(0);
      for (const { expr } of targets) {
        expect(namesIn(expr).length).toBeGreaterThan(0);
        expect(namesIn(expr).filter((name) => !isKnown(name))).toEqual([]);
      }
    }
  );

  it('shows every metric', () => {
    const shown = new Set(
      dashboard.panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => namesIn(expr)))
    );
    const missing = known.filter(({ name }) => !shown.has(name) && !shown.has(`${name}_bucket`));
    expect(missing).toEqual([]);
  });

  it('has alarms for metrics that there are', () => {
    const text = readDocument('examples/grafana/README.md');
    expect(namesIn(text).filter((name) => !isKnown(name))).toEqual([]);
  });

  it('is what docs/monitoring.md describes', () => {
    const text = readDocument('docs/monitoring.md');
    for (const { name, type } of known) {
      expect(text).toMatch(new RegExp(`\\| \`${name}\` +\\| ${type} `));
    }
  });
});
