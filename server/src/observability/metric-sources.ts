import type { Core } from '@strapi/strapi';

/** One metric, as Prometheus knows it. */
export interface Metric {
  name: string;
  help: string;
  type: 'counter' | 'gauge' | 'histogram';
}

export interface Sample {
  value: number;
  labels?: Readonly<Record<string, string>>;
  /** Of a histogram: what follows the metric's name. */
  suffix?: '_bucket' | '_count';
}

/**
 * What a feature says of itself. It reads the database, so that every node of a site answers the
 * same, and little of it, however much there is.
 */
export interface MetricSource {
  metrics: readonly Metric[];
  /** Samples by the metric's name. */
  read(strapi: Core.Strapi): Promise<Readonly<Record<string, readonly Sample[]>>>;
}

const sources = new WeakMap<Core.Strapi, MetricSource[]>();

/** Metrics that are answered from now on. To be called in `register`. */
export const offerMetrics = (strapi: Core.Strapi, source: MetricSource): void => {
  sources.set(strapi, [...metricSources(strapi), source]);
};

export const metricSources = (strapi: Core.Strapi): readonly MetricSource[] =>
  sources.get(strapi) ?? [];
