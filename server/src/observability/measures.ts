import { type Counter, type Histogram, metrics } from '@opentelemetry/api';
import { INSTRUMENTATION } from './instrumentation';

/** What this process counts for OpenTelemetry; docs/monitoring.md#traces. */
interface Measures {
  published: Counter;
  attempts: Histogram;
  accepted: Counter;
  applied: Counter;
}

const create = (): Measures => {
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

let created: Measures | undefined;

/** Made at the first use: whoever registers an SDK has done so by then. */
export const measures = (): Measures => (created ??= create());
