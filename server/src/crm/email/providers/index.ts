import type { Core } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import type { Context } from 'koa';
import { getOptions } from '../../../config';
import type { RouteConfig } from '../../../room';
import { createMailgun } from './mailgun';
import { providerBody } from './raw-body';
import { receive } from './receive';
import { forgetSeen } from './seen-events';
import { createSendgrid, sendgridKey } from './sendgrid';
import type { Provider } from './types';

type ProviderName = 'sendgrid' | 'mailgun';

/** The providers that the site's options give a key for. @throws Error where a key is none. */
const configured = (strapi: Core.Strapi): Partial<Record<ProviderName, Provider>> => {
  const { sendgrid, mailgun } = getOptions(strapi).email;
  return {
    ...(sendgrid && { sendgrid: createSendgrid(sendgridKey(sendgrid.publicKey)) }),
    ...(mailgun && { mailgun: createMailgun(mailgun.signingKey, Date.now) }),
  };
};

/** Stops the boot where an option holds no key. */
export const checkProviderKeys = (strapi: Core.Strapi): void => {
  try {
    configured(strapi);
  } catch {
    throw new Error(
      'switchboard.email.sendgrid.publicKey: must be the public key that SendGrid shows for the signed event webhook (base64).'
    );
  }
};

export const emailWebhooks = ({ strapi }: { strapi: Core.Strapi }) => {
  const answer = (name: ProviderName) => async (ctx: Context) => {
    const provider = configured(strapi)[name];
    if (!provider) {
      throw new errors.NotFoundError(`No key for ${name} is set in the options of switchboard`);
    }
    const body = providerBody(ctx.req);
    if (!body) throw new errors.PayloadTooLargeError('The body is too large');
    const events = await provider.read({
      ...body,
      header: (header) => ctx.get(header) || undefined,
    });
    if (!events) throw new errors.UnauthorizedError('The signature does not hold');
    ctx.body = {
      received: events.length,
      recorded: await receive(strapi, name, events, Date.now()),
    };
  };
  return { sendgrid: answer('sendgrid'), mailgun: answer('mailgun') };
};

/** Open to the world: what is posted there counts only with the provider's own signature. */
export const emailWebhookRoutes: RouteConfig[] = (['sendgrid', 'mailgun'] as const).map((name) => ({
  method: 'POST',
  path: `/email/${name}`,
  handler: `email-webhooks.${name}`,
  config: { auth: false },
}));

/** Once a day, on whichever node comes first; doing it twice does no harm. */
export const scheduleForgetting = (strapi: Core.Strapi): void => {
  strapi.cron.add({
    'switchboard-email-seen': {
      task: () => forgetSeen(strapi, Date.now()),
      options: '43 3 * * *',
    },
  });
};
