import { AUTHENTICATION } from './authentication.mjs';
import { QUESTIONS } from './questions.mjs';
import { RECORDS } from './records.mjs';
import { Broken, expectAnswer, NotTried, Service, some } from './service.mjs';

const CHECKS = [...AUTHENTICATION, ...RECORDS, ...QUESTIONS];

/** Why nothing can be checked, or null. */
const whyNot = async (service) => {
  try {
    const ping = expectAnswer(await service.ping(), 200, { ok: true, server_time: some.integer });
    service.clockOffset = ping.server_time - Math.floor(Date.now() / 1000);
    if (ping.mode === 'test') return null;
    return `${ping.connection} is a ${ping.mode} connection; give one in test mode, which writes no stock`;
  } catch (error) {
    if (error instanceof Broken) return `ping ${error.message}`;
    return `the service cannot be reached: ${error.cause?.message ?? error.message}`;
  }
};

/**
 * Holds a till service against the contract, with records of a connection in test mode. Says one
 * line for each thing that is not kept or could not be tried, and how many are.
 * @param {{ url: string, key: string, secret: string, say: (line: string) => void }} options
 * @returns {Promise<boolean>} whether all that was tried is kept
 */
export const verify = async ({ url, key, secret, say }) => {
  const service = new Service({ url, key, secret });
  const reason = await whyNot(service);
  if (reason !== null) {
    say(`not verified: ${reason}`);
    return false;
  }
  const found = { kept: 0, broken: 0, untried: 0 };
  for (const [what, check] of CHECKS) {
    try {
      await check(service);
      found.kept += 1;
    } catch (error) {
      if (error instanceof NotTried) {
        found.untried += 1;
        say(`not tried: ${what} (${error.message})`);
        continue;
      }
      found.broken += 1;
      const lost = `cannot be told: ${error.cause?.message ?? error.message}`;
      say(`not kept: ${what}: ${error instanceof Broken ? error.message : lost}`);
    }
  }
  say(`${found.kept} kept, ${found.broken} not kept, ${found.untried} not tried`);
  return found.broken === 0;
};
