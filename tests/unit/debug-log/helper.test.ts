import { createRequire } from 'node:module';
import type { Core } from '@strapi/strapi';
import { debugEach, debugLog } from '../../../server/src/runtime/text';

type Log = Core.Strapi['log'];

/** The host's own logger, which a site configures under `logger.config` in config/server. */
const { createLogger } = createRequire(require.resolve('@strapi/strapi/package.json'))(
  '@strapi/logger'
) as { createLogger(options: { level: string; transports?: unknown[] }): Log };

const logAt = (level: string) => {
  const log = createLogger({ level });
  const written = jest.spyOn(log, 'debug').mockImplementation(() => log);
  return { log, written };
};

describe('a line of the level debug', () => {
  it('is written where the host writes that level, and begins as every line does', () => {
    const { log, written } = logAt('debug');
    debugLog({ log })?.('webhook 3 switched off');
    expect(written.mock.calls).toEqual([['switchboard: webhook 3 switched off']]);
  });

  it.each(['http', 'info', 'warn', 'error'])(
    'is not even put together at the level %s',
    (level) => {
      const { log, written } = logAt(level);
      const text = jest.fn(() => 'webhook 3 switched off');
      debugLog({ log })?.(text());
      debugEach({ log }, [1, 2], text);
      expect(text).not.toHaveBeenCalled();
      expect(written).not.toHaveBeenCalled();
    }
  );

  it('is written for each of many', () => {
    const { log, written } = logAt('silly');
    debugEach({ log }, new Set([4, 5]), (id) => `POS event ${id} woken`);
    expect(written.mock.calls.flat()).toEqual([
      'switchboard: POS event 4 woken',
      'switchboard: POS event 5 woken',
    ]);
  });

  it('is left out where the levels of the log are a site’s own', () => {
    expect(debugLog({ log: {} as Log })).toBeNull();
  });
});
