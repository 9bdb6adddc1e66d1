import type { Core } from '@strapi/strapi';
import type { Metric as PrometheusMetric } from 'prom-client';
import { metricSources } from './metric-sources';

/** Metrics in the text format of Prometheus, with its content type. */
export interface Exposition {
  type: string;
  text: string;
}

/** Everything is read when it is asked for, so nothing is kept between two answers. */
export const expose = async (strapi: Core.Strapi): Promise<Exposition> => {
  // Sites that are never asked do not load it.
  const { Registry } = await import('prom-client');
  const registry = new Registry();
  for (const { metrics, read } of metricSources(strapi)) {
    const samples = await read(strapi);
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
  return { type: registry.contentType, text: await registry.metrics() };
};
