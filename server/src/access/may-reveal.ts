import type { Core } from '@strapi/strapi';
import type { Context } from 'koa';
import { adminActionId } from '../../../shared/contracts/permissions';

const CONTENT_API_ACTION = 'plugin::switchboard.webhooks.revealSecret';

interface Ability {
  can(action: string): boolean;
}

interface HostAuthentication {
  verify(auth: unknown, config: { scope: string[] }): Promise<void>;
}

interface State {
  auth?: unknown;
  userAbility?: Ability;
  route?: { info?: { type?: string } };
}

/**
 * Whether whoever asks may see signing secrets: an action of its own beside reading webhooks.
 * Content API: the host's own judgement of `webhooks.revealSecret`, so that API tokens of every kind,
 * users-permissions roles and Basic (by the user's admin roles) are each judged as for a route.
 * Admin API: the admin action `webhooks.reveal`.
 */
export const mayRevealSecrets = async (strapi: Core.Strapi, ctx: Context): Promise<boolean> => {
  const { auth, userAbility, route } = ctx.state as State;
  if (route?.info?.type === 'admin') {
    return userAbility?.can(adminActionId('webhooks.reveal')) ?? false;
  }
  const host = strapi.get('auth') as unknown as HostAuthentication;
  try {
    await host.verify(auth, { scope: [CONTENT_API_ACTION] });
    return true;
  } catch {
    // A refusal, whatever kind of one: who cannot be judged sees nothing.
    return false;
  }
};
