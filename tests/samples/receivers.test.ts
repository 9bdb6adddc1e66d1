import { available, describeReceiver } from './receiver-suite';

/** The receivers of `examples/receivers` in plain languages; those of frameworks are in the file beside it. */

describe.each(available(({ path: at }) => at === '/'))('examples/receivers/$folder', (sample) => {
  describeReceiver(sample, [undefined, '', '  ', '\n', 'whsec_', 'whsec_ ']);
});
