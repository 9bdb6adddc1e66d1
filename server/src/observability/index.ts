import { metrics } from '@opentelemetry/api';
import type { Metric as PrometheusMetric, Registry } from 'prom-client';
import { z } from '@strapi/utils';
import { adminApi } from '../access/admin-actions';
import type { Feature } from '../feature';
import { endpoint } from '../http/endpoint';
import { INSTRUMENTATION, type MetricSource, metricSources } from './measures';
import type { App } from '../app';

/** `switchboard_deliveries_waiting` is `switchboard.deliveries_waiting` there. */
const nameOf = (name: string): string => name.replace('_', '.');

/** Observes waiting work and its age whenever a site's OpenTelemetry SDK exports; else never. */
const observe = (app: App, source: MetricSource): void => {
  const meter = metrics.getMeter(INSTRUMENTATION);
  const gauges = source.metrics
    .filter(({ type }) => type === 'gauge')
    .map(({ name, help }) => ({
      name,
      gauge: meter.createObservableGauge(nameOf(name), { description: help }),
    }));
  meter.addBatchObservableCallback(
    async (result) => {
      const samples = await source.read(app);
      for (const { name, gauge } of gauges)
        for (const { value, labels } of samples[name] ?? []) result.observe(gauge, value, labels);
    },
    gauges.map(({ gauge }) => gauge)
  );
};

/** Everything is read when it is asked for, so nothing is kept between two answers. */
const readAll = async (app: App): Promise<Registry> => {
  // Sites that are never asked do not load it.
  const { Registry: Metrics } = await import('prom-client');
  const registry = new Metrics();
  for (const { metrics, read } of metricSources(app)) {
    const samples = await read(app);
    for (const metric of metrics) {
      const values = (samples[metric.name] ?? []).map(({ value, labels = {}, suffix = '' }) => ({
        value,
        labels,
        metricName: `${metric.name}${suffix}`,
      }));
      const given = { ...metric, get: async () => ({ ...metric, aggregator: 'sum', values }) };
      // Its classes count by themselves; what a registry asks of them is this much.
      registry.registerMetric(given as unknown as PrometheusMetric);
    }
  }
  return registry;
};

const api = adminApi({
  metrics: {
    find: endpoint('GET /metrics', { may: 'metrics.read' }, async ({ app, ctx }) => {
      const registry = await readAll(app);
      ctx.body = await registry.metrics();
      ctx.set('Content-Type', registry.contentType);
      ctx.set('Cache-Control', 'no-store');
    }),
  },
});

/** Metrics for monitoring systems; docs/monitoring.md#metrics. The features say what there is. */
export const observability: Feature = {
  controllers: api.controllers,
  routes: {
    crm: [{ method: 'GET', path: '/metrics', handler: 'metrics.find', response: z.string() }],
    admin: api.routes,
  },
  bootstrap(app) {
    for (const source of metricSources(app)) observe(app, source);
  },
};
