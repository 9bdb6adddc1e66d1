import type { Core } from '@strapi/strapi';
import { getHook } from '../../hooks';
import { parseCidrList } from '../../net/address';
import { type AddressGuard, createAddressGuard } from '../../net/guard';
import { describePrivateAddresses } from '../../net/private-addresses';
import { whenLoaded } from '../../runtime/when-loaded';
import { addressFacts } from '../sending/nodes';

const hookOf = (strapi: Core.Strapi) => getHook(strapi, 'service_crm_webhook_allow_local');

/**
 * The guard of this site's webhooks: environment, option and hook
 * (docs/operations.md#addresses-that-are-refused). A command's goes by what the site says.
 */
export const createSiteGuard = (strapi: Core.Strapi): AddressGuard => {
  const { open, allowed } = addressFacts(strapi);
  return createAddressGuard({
    allowedCidrs: parseCidrList(allowed),
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
    const policy = addressFacts(strapi);
    const hook = hookOf(strapi);
    void hook.call(policy.open).then((answer) => {
      const hookSays = hook.getHandlers().length > 0 ? answer === true : null;
      strapi.log.info(`switchboard: ${describePrivateAddresses(policy, hookSays)}`);
    });
  });
