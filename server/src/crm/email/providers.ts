import type { Core } from '@strapi/strapi';
import type { Context } from 'koa';
import { createFailedAttempts } from '../../access/failed-attempts';
import { clientAddress } from '../../net/client-address';
import { getOptions } from '../../config';
import type { RouteConfig } from '../../feature';
import { createMailgun } from './mailgun';
import { typeOfUnparsed } from '../../http/unparsed';
import { readProviderBody } from './providers/raw-body';
import { receive } from './providers/receive';
import { forgetSeen } from './providers/seen-events';
import { createSendgrid, sendgridKey } from './sendgrid';
import type { Provider } from './provider';

type ProviderName = 'sendgrid' | 'mailgun';

/** The providers that the site's options give a key for. @throws Error where a key is none. */
const configured = (strapi: Core.Strapi): Partial<Record<ProviderName, Provider>> => {
  const { sendgrid, mailgun } = getOptions(strapi).email;
  return {
    ...(sendgrid && { sendgrid: createSendgrid(sendgridKey(sendgrid.publicKey), Date.now) }),
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

/** The host adds a method for each HTTP error to koa's context. */
type HostContext = Context &
  Record<'unauthorized' | 'payloadTooLarge' | 'requestTimeout' | 'serviceUnavailable', Refuse> &
  Record<'tooManyRequests' | 'notFound', Refuse>;
type Refuse = (message: string) => void;

const RETRY_AFTER_SECONDS = 10;

export const emailWebhooks = ({ strapi }: { strapi: Core.Strapi }) => {
  // Whoever posts what no provider signed is told to wait; what a provider signed always passes.
  const failures = createFailedAttempts();
  const refuse = async (ctx: HostContext, answer: () => void): Promise<void> => {
    const retryAfter = await failures.charge(clientAddress(ctx));
    if (retryAfter === null) {
      answer();
      return;
    }
    ctx.set('Retry-After', String(retryAfter));
    ctx.tooManyRequests('Too many posts without a valid signature, try again later');
  };
  const unsigned = (ctx: HostContext): Promise<void> =>
    refuse(ctx, () => ctx.unauthorized('The signature does not hold'));

  const take = async (ctx: HostContext, name: ProviderName, provider: Provider, bytes: Buffer) => {
    const post = await provider.read({
      bytes,
      contentType: typeOfUnparsed(ctx.req),
      header: (header) => ctx.get(header) || undefined,
    });
    const recorded = post ? await receive(strapi, name, post, Date.now()) : null;
    if (!post || recorded === null) return unsigned(ctx);
    ctx.body = { received: post.events.length, recorded };
  };

  const answer = (name: ProviderName) => async (ctx: HostContext) => {
    const provider = configured(strapi)[name];
    if (!provider) {
      ctx.notFound(`No key for ${name} is set in the options of switchboard`);
      return;
    }
    const body = await readProviderBody(ctx.req);
    switch (body.kind) {
      case 'bytes':
        try {
          await take(ctx, name, provider, body.bytes);
        } finally {
          body.release();
        }
        return;
      case 'too_large':
        await refuse(ctx, () => ctx.payloadTooLarge('The body is too large'));
        return;
      case 'slow':
        ctx.set('Connection', 'close');
        await refuse(ctx, () => ctx.requestTimeout('The body did not come in time'));
        return;
      case 'broken':
        // Nobody is there to read an answer.
        ctx.set('Connection', 'close');
        ctx.status = 400;
        return;
      case 'busy':
        ctx.set('Retry-After', String(RETRY_AFTER_SECONDS));
        ctx.serviceUnavailable('Too much is being received at once, try again later');
    }
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
