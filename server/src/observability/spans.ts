import { type Attributes, type Span, SpanStatusCode, trace } from '@opentelemetry/api';
import { INSTRUMENTATION } from './instrumentation';

/** The spans of the plugin, docs/monitoring.md#traces. */
export type SpanName =
  'switchboard.publish' | 'switchboard.attempt' | 'switchboard.intake' | 'switchboard.apply';

/** Of the API alone: without an SDK nothing is recorded, whenever one is registered. */
const tracer = trace.getTracer(INSTRUMENTATION);

/**
 * Does some work within a span, which ends with it. Of an error the span has the name alone: its
 * message may hold what was to be written.
 */
export const inSpan = <T>(
  name: SpanName,
  attributes: Attributes,
  work: (span: Span) => Promise<T>
): Promise<T> =>
  tracer.startActiveSpan(name, { attributes }, async (span) => {
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
