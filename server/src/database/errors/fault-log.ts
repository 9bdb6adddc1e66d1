import { errorText } from '../../runtime/text';
import { isInfrastructureFault } from './faults';

const EVERY_MS = 60_000;

/**
 * Logs errors of a loop. A database that is away fails everything again and again: of that, one line
 * at first and one a minute, with how many there were; any other error each time.
 */
export const createFaultLog = (
  log: { error(message: string): void },
  now: () => number = Date.now
): ((what: string, error: unknown) => void) => {
  let lastAt = Number.NEGATIVE_INFINITY;
  let unsaid = 0;
  return (what, error) => {
    if (isInfrastructureFault(error)) {
      if (now() - lastAt < EVERY_MS) {
        unsaid += 1;
        return;
      }
      lastAt = now();
    }
    const more = unsaid > 0 ? ` (and ${unsaid} times more since the last such line)` : '';
    unsaid = 0;
    log.error(`${what}: ${errorText(error)}${more}`);
  };
};
