import type { Core } from '@strapi/strapi';
import type { Context } from 'koa';
import { type AdminAction, adminActionId } from '../../../shared/contracts/permissions';

/** Something that an answer shows only to whoever has an action beside the route's own. */
interface Shown {
  /** Actions of the content API; each is enough. */
  content: readonly string[];
  admin: AdminAction;
}

const SECRETS: Shown = { content: ['webhooks.revealSecret'], admin: 'webhooks.reveal' };
const DELIVERIES: Shown = {
  content: ['deliveries.find', 'deliveries.findOne'],
  admin: 'webhooks.read',
};
const JOURNAL: Shown = { content: ['journal.find'], admin: 'journal.read' };
const POS_EVENTS: Shown = { content: [], admin: 'pos-events.read' };

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
 * Content API: the host's own judgement of the action, so that API tokens of every kind,
 * users-permissions roles and Basic (by the user's admin roles) are each judged as for a route.
 */
const isAllowed = async (
  strapi: Core.Strapi,
  ctx: Context,
  { content, admin }: Shown
): Promise<boolean> => {
  const { auth, userAbility, route } = ctx.state as State;
  if (route?.info?.type === 'admin') return userAbility?.can(adminActionId(admin)) ?? false;
  const host = strapi.get('auth') as unknown as HostAuthentication;
  for (const action of content) {
    try {
      await host.verify(auth, { scope: [`plugin::switchboard.${action}`] });
      return true;
    } catch {
      // A refusal, whatever kind of one: who cannot be judged sees nothing.
    }
  }
  return false;
};

/** Whether whoever asks may see signing secrets: an action of its own beside reading webhooks. */
export const mayRevealSecrets = (strapi: Core.Strapi, ctx: Context): Promise<boolean> =>
  isAllowed(strapi, ctx, SECRETS);

/** Whether whoever asks may see what deliveries hold, in the answer of a route for something else. */
export const mayReadDeliveries = (strapi: Core.Strapi, ctx: Context): Promise<boolean> =>
  isAllowed(strapi, ctx, DELIVERIES);

/** Whether whoever asks may have what is in the journal. */
export const mayReadJournal = (strapi: Core.Strapi, ctx: Context): Promise<boolean> =>
  isAllowed(strapi, ctx, JOURNAL);

/** Whether whoever asks may see tills' records, in the answer of a route for something else. */
export const mayReadPosEvents = (strapi: Core.Strapi, ctx: Context): Promise<boolean> =>
  isAllowed(strapi, ctx, POS_EVENTS);
