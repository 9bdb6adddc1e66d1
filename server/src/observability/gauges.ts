import { metrics } from '@opentelemetry/api';
import type { Core } from '@strapi/strapi';
import { INSTRUMENTATION } from './instrumentation';
import { type MetricSource, metricSources } from './metric-sources';

/** `switchboard_deliveries_waiting` is `switchboard.deliveries_waiting` there. */
const nameOf = (name: string): string => name.replace('_', '.');

const observe = (strapi: Core.Strapi, source: MetricSource): void => {
  const meter = metrics.getMeter(INSTRUMENTATION);
  const gauges = source.metrics
    .filter(({ type }) => type === 'gauge')
    .map(({ name, help }) => ({
      name,
      gauge: meter.createObservableGauge(nameOf(name), { description: help }),
    }));
  meter.addBatchObservableCallback(
    async (result) => {
      const samples = await source.read(strapi);
      for (const { name, gauge } of gauges)
        for (const { value, labels } of samples[name] ?? []) result.observe(gauge, value, labels);
    },
    gauges.map(({ gauge }) => gauge)
  );
};

/** Has what waits, and for how long, asked for whenever a site's OpenTelemetry SDK exports; else never. */
export const observeGauges = (strapi: Core.Strapi): void => {
  for (const source of metricSources(strapi)) observe(strapi, source);
};
