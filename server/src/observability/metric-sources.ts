import type { App } from '../app';
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
  read(app: App): Promise<Readonly<Record<string, readonly Sample[]>>>;
}

const sources = (): MetricSource[] => [];

/** Metrics that are answered from now on. To be called in `register`. */
export const offerMetrics = (app: App, source: MetricSource): void => {
  app.part(sources).push(source);
};

export const metricSources = (app: App): readonly MetricSource[] => app.part(sources);
