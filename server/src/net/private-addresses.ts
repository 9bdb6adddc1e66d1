import type { GivenNodeEnv } from './node-env';

export interface PrivateAddressPolicy {
  /** Whether every address is allowed. */
  open: boolean;
  /** Why, in words for the boot log. */
  why: string;
}

export interface PrivateAddressFacts {
  /** The option `webhooks.allowPrivateNetworks`. */
  option: boolean | readonly string[];
  nodeEnv: GivenNodeEnv;
  /** The site runs under `strapi develop`. */
  develop: boolean;
}

/** Somebody who sets one of these says that the site runs on a machine of their own. */
const LOCAL_ENVIRONMENTS = new Set(['development', 'local']);
const OPTION = 'webhooks.allowPrivateNetworks';

/**
 * Whether receivers may live at private addresses
 * (docs/contract-webhooks.md#private-addresses). Fails closed: an environment that nobody set is not
 * a developer's.
 */
export function judgePrivateAddresses(facts: PrivateAddressFacts): PrivateAddressPolicy {
  const { option, nodeEnv, develop } = facts;
  if (option === true) return { open: true, why: `${OPTION} is true` };
  if (develop) return { open: true, why: 'the site runs under strapi develop' };
  const given = nodeEnv === 'unknown' ? null : nodeEnv.given;
  if (given !== null && LOCAL_ENVIRONMENTS.has(given)) {
    return { open: true, why: `NODE_ENV is set to ${given}` };
  }
  const environment =
    nodeEnv === 'unknown'
      ? 'this system does not tell whether anybody set NODE_ENV'
      : `NODE_ENV is ${given === null ? 'not set' : `set to ${given}`}`;
  if (option !== false && option.length > 0) {
    return { open: false, why: `${environment}; ${OPTION} allows ${option.join(', ')}` };
  }
  return { open: false, why: `${environment}; ${OPTION} can allow some` };
}

const HOOK = 'service_crm_webhook_allow_local';

/**
 * The one line of the boot log.
 *
 * @param hookSays what the hook's handlers make of it now; null where there are none
 */
export const describePrivateAddresses = (
  { open, why }: PrivateAddressPolicy,
  hookSays: boolean | null
): string => {
  const reasons =
    hookSays === null ? why : `${why}; ${HOOK}, asked each time, says ${hookSays ? 'yes' : 'no'}`;
  return `private addresses are ${(hookSays ?? open) ? 'open' : 'refused'} (${reasons})`;
};
