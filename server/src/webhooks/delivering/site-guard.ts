import type { Core } from '@strapi/strapi';
import { getOptions } from '../../config';
import { getHook } from '../../hooks';
import { parseCidrList } from '../../net/address';
import { type AddressGuard, createAddressGuard } from '../../net/guard';
import { givenNodeEnv } from '../../net/node-env';
import {
  describePrivateAddresses,
  judgePrivateAddresses,
  type PrivateAddressPolicy,
} from '../../net/private-addresses';
import { whenLoaded } from '../../runtime/when-loaded';

/** What environment and option say of private addresses; the hook's handlers may say otherwise. */
export const privateAddressPolicy = (strapi: Core.Strapi): PrivateAddressPolicy =>
  judgePrivateAddresses({
    option: getOptions(strapi).webhooks.allowPrivateNetworks,
    nodeEnv: givenNodeEnv(),
    // `strapi develop` alone starts the host this way.
    develop: strapi.config.get('autoReload') === true,
  });

const hookOf = (strapi: Core.Strapi) => getHook(strapi, 'service_crm_webhook_allow_local');

/** The guard of this site's webhooks: environment, option and hook (docs/operations.md#addresses-that-are-refused). */
export const createSiteGuard = (strapi: Core.Strapi): AddressGuard => {
  const { allowPrivateNetworks } = getOptions(strapi).webhooks;
  const { open } = privateAddressPolicy(strapi);
  return createAddressGuard({
    allowedCidrs: Array.isArray(allowPrivateNetworks) ? parseCidrList(allowPrivateNetworks) : [],
    isLocalAllowed: async () => (await hookOf(strapi).call(open)) === true,
  });
};

/**
 * One line of the boot log: whether private addresses are open, and why. Once the whole site has
 * started: what the hook's handlers say counts, and a site's own `bootstrap` may bring one.
 * @returns a function that gives it up, for a site that is stopped before
 */
export const announcePrivateAddresses = (strapi: Core.Strapi): (() => void) =>
  whenLoaded(strapi, () => {
    const policy = privateAddressPolicy(strapi);
    const hook = hookOf(strapi);
    void hook.call(policy.open).then((answer) => {
      const hookSays = hook.getHandlers().length > 0 ? answer === true : null;
      strapi.log.info(`switchboard: ${describePrivateAddresses(policy, hookSays)}`);
    });
  });
