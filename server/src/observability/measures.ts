import {
  type Attributes,
  INVALID_SPAN_CONTEXT,
  metrics,
  type Span,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import type { App } from '../app';

/** The name that spans and meters are listed under. */
export const INSTRUMENTATION = 'strapi-plugin-switchboard';

/** This process's counters for OpenTelemetry; docs/monitoring.md#traces. */
const create = () => {
  const meter = metrics.getMeter(INSTRUMENTATION);
  return {
    published: meter.createCounter('switchboard.events.published', {
      description: 'Events that were queued for webhooks or kept in the journal',
    }),
    attempts: meter.createHistogram('switchboard.attempt.duration', {
      description: 'How long attempts of deliveries took, by outcome',
      unit: 's',
    }),
    accepted: meter.createCounter('switchboard.pos.records.accepted', {
      description: 'Records of tills that were taken, those seen before included',
    }),
    applied: meter.createCounter('switchboard.pos.records.applied', {
      description: 'Records of tills that were worked on',
    }),
  };
};

let created: ReturnType<typeof create> | undefined;

/** Created at the first use: an SDK is registered by then. */
export const measures = () => (created ??= create());

/** The spans of the plugin, docs/monitoring.md#traces. */
type SpanName =
  'switchboard.publish' | 'switchboard.attempt' | 'switchboard.intake' | 'switchboard.apply';

/** The API's own tracer: without an SDK nothing is recorded, whenever one is registered. */
const tracer = trace.getTracer(INSTRUMENTATION);

const UNRECORDED = trace.wrapSpanContext(INVALID_SPAN_CONTEXT);

/** True if no SDK is registered: even a span that nobody records takes time. */
const isUntraced = (): boolean => {
  const provider = trace.getTracerProvider() as { getDelegateTracer?(name: string): unknown };
  return provider.getDelegateTracer !== undefined && !provider.getDelegateTracer(INSTRUMENTATION);
};

/** Does work within a span. An error is recorded by its name: its message may hold values. */
export const inSpan = <T>(
  name: SpanName,
  attributes: Attributes,
  work: (span: Span) => Promise<T>
): Promise<T> => {
  if (isUntraced()) return work(UNRECORDED);
  return tracer.startActiveSpan(name, { attributes }, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      const type = error instanceof Error ? error.name : 'Error';
      span.setAttribute('error.type', type);
      span.setStatus({ code: SpanStatusCode.ERROR, message: type });
      throw error;
    } finally {
      span.end();
    }
  });
};

export interface Metric {
  name: string;
  help: string;
  type: 'counter' | 'gauge' | 'histogram';
}

export interface Sample {
  value: number;
  labels?: Readonly<Record<string, string>>;
  /** A histogram's suffix to the metric's name. */
  suffix?: '_bucket' | '_count';
}

/** A feature's metrics, read from a little of the database: every node answers the same. */
export interface MetricSource {
  metrics: readonly Metric[];
  read(app: App): Promise<Readonly<Record<string, readonly Sample[]>>>;
}

const sources = (): MetricSource[] => [];

/** Metrics that are answered from now on. To be called in `register`. */
export const offerMetrics = (app: App, source: MetricSource): void => {
  app.part(sources).push(source);
};

export const metricSources = (app: App): readonly MetricSource[] => app.part(sources);
