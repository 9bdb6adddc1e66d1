import type { Core } from '@strapi/strapi';
import type { Context } from 'koa';
import { errors } from '@strapi/utils';
import { FailedAttempts } from '../../access/failed-attempts';
import type { PlainTable } from '../../database/tables/plain-tables';
import type { RouteConfig } from '../../feature';
import {
  createBodyBudget,
  leavingPostsUnparsed,
  readBoundedBody,
  typeOfUnparsed,
} from '../../http/bounded-body';
import { clientAddress } from '../../net/client-address';
import { digestOf, logFailure } from '../../runtime/text';
import { crmRecords } from '../resources/crm-records';
import { findByEmail } from '../resources/upsert-contact';
import { getEmailService, setContactStatus } from './email-service';
import {
  mailgun,
  type Provider,
  type ProviderEvent,
  sendgrid,
  sendgridKey,
  SIGNATURE_WINDOW_MS,
  type SignedPost,
} from './signed-posts';
import { type App, appOf } from '../../app';

const MIB = 1024 * 1024;

/** SendGrid posts events in batches of at most 768 kB; Mailgun posts each by itself. */
const EVENTS_MAX = MIB;
/** A mail comes with its attachments: of SendGrid up to 30 MB, of Mailgun up to 25. */
const MAIL_MAX = 32 * MIB;
/** The limit for all posts under way: their senders have shown no signature yet. */
const TOTAL_MAX = 32 * MIB;
/** Providers sit in data centres: what has not come by then is not coming. */
const DEADLINE_MS = 30_000;

const budget = createBodyBudget(TOTAL_MAX);

/** Leaves what mail providers post to the route, which reads it only if a provider is configured. */
export const leaveProviderPostsUnread = (app: App) => {
  const prefix = app.strapi.config.get<string>('api.rest.prefix', '/api').replace(/\/+$/, '');
  const base = `${prefix}/fw-crm/v1/email/`.toLowerCase();
  return leavingPostsUnparsed((path) => path.startsWith(base));
};

const TABLE = 'switchboard_email_seen';

/** Ids of what providers posted, so that a post that is made again counts once. */
export const seenEventsTable: PlainTable = {
  tableName: TABLE,
  attributes: {
    digest: { type: 'string', column: { args: [64] } },
    seen_at: { type: 'biginteger' },
  },
  indexes: [
    { name: 'sb_email_seen_id', columns: ['digest'], type: 'unique' },
    { name: 'sb_email_seen_at', columns: ['seen_at'] },
  ],
};

const isSeen = async (app: App, digest: string): Promise<boolean> => {
  const db = await app.db.current();
  return Boolean(await db.table(TABLE).where({ digest }).first('id'));
};

/** Notes an id within the current transaction, which `db.unique` repeats on a race; false if it was noted before. */
const noteSeen = async (app: App, provider: string, id: string, now: number): Promise<boolean> => {
  const db = await app.db.current();
  const digest = digestOf(`${provider}\n${id}`);
  if (await isSeen(app, digest)) return false;
  await db.table(TABLE).insert({ digest, seen_at: now });
  return true;
};

/** True if a signed token may count with this content: it is new, or had the same content before. */
const bindToken = async (
  app: App,
  provider: string,
  { token, content }: { token: string; content: string },
  now: number
): Promise<boolean> => {
  const withContent = `${token}\n${content}`;
  if (!(await noteSeen(app, `${provider} token`, token, now))) {
    return isSeen(app, digestOf(`${provider} token with\n${withContent}`));
  }
  return noteSeen(app, `${provider} token with`, withContent, now);
};

const record = async (app: App, contact: string, event: ProviderEvent): Promise<unknown> => {
  const email = getEmailService(app);
  const { type, campaign } = event;
  switch (type) {
    case 'opened':
    case 'clicked': {
      // Without the CRM's campaign it is no campaign email.
      if (!campaign || event.machine) return undefined;
      const { userAgent, ip, at, sentAt, url } = event;
      const seen = { campaign, contact, userAgent, ip, at: at || undefined, sentAt };
      return type === 'opened' ? email.opened(seen) : email.clicked({ ...seen, url: url ?? '' });
    }
    case 'bounced': {
      const { hard, reason } = event;
      return email.bounced({ campaign, contact, type: hard ? 'hard' : 'soft', reason });
    }
    case 'complained':
      return email.complained({ campaign, contact });
    case 'unsubscribed':
      return setContactStatus(app, await crmRecords(app, 'contact').get(contact), 'unsubscribed');
    case 'received': {
      const { subject, text } = event;
      return email.received({ contact, subject, from: event.email, text });
    }
  }
};

/**
 * Records each event of a post in its own transaction: one that fails (its campaign is gone) does not block the others,
 * or make the provider repeat them all. Returns how many were recorded; null if the signature was another body's.
 */
const receive = async (app: App, provider: string, { events, once }: SignedPost, now: number) => {
  if (once) {
    const bound = await app.db.unique(() => bindToken(app, provider, once, now));
    if (!bound) return null;
  }
  let taken = 0;
  for (const event of events) {
    try {
      const isTaken = await app.db.unique(async () => {
        if (!(await noteSeen(app, provider, event.id, now))) return false;
        const contact = await findByEmail(app, event.email);
        if (!contact) return false;
        await record(app, contact, event);
        return true;
      });
      if (isTaken) taken += 1;
    } catch (error) {
      if (!(error instanceof errors.ApplicationError || error instanceof errors.HttpError)) {
        throw error;
      }
      logFailure(app, `what ${provider} posted (${event.type}) was left out`, 'warn')(error);
    }
  }
  return taken;
};

const PROVIDERS = ['sendgrid', 'mailgun'] as const;
type ProviderName = (typeof PROVIDERS)[number];

/** The providers that the site's options give a key for. @throws Error if a key is none. */
const configured = (app: App): Partial<Record<ProviderName, Provider>> => {
  const { email } = app.options;
  return {
    ...(email.sendgrid && { sendgrid: sendgrid(sendgridKey(email.sendgrid.publicKey)) }),
    ...(email.mailgun && { mailgun: mailgun(email.mailgun.signingKey) }),
  };
};

/** Stops the boot if an option holds no key. */
export const checkProviderKeys = (app: App): void => {
  try {
    configured(app);
  } catch {
    throw new Error(
      'switchboard.email.sendgrid.publicKey: must be the public key that SendGrid shows for the signed event webhook (base64).'
    );
  }
};

const RETRY_AFTER_SECONDS = 10;

export const emailWebhooks = ({ strapi }: { strapi: Core.Strapi }) => {
  const app = appOf(strapi);
  // Unsigned posts are rate limited; signed posts always pass.
  const failures = new FailedAttempts();
  const refuse = async (ctx: Context, answer: () => void): Promise<void> => {
    const retryAfter = await failures.charge(clientAddress(ctx));
    if (retryAfter === null) return answer();
    ctx.set('Retry-After', String(retryAfter));
    ctx.tooManyRequests('Too many posts without a valid signature, try again later');
  };

  const take = async (ctx: Context, name: ProviderName, provider: Provider, bytes: Buffer) => {
    const contentType = typeOfUnparsed(ctx.req);
    const header = (field: string) => ctx.get(field) || undefined;
    const post = await provider({ bytes, contentType, header }, Date.now());
    const recorded = post ? await receive(app, name, post, Date.now()) : null;
    if (!post || recorded === null) {
      return refuse(ctx, () => ctx.unauthorized('The signature does not match'));
    }
    ctx.body = { received: post.events.length, recorded };
  };

  const answer =
    (name: ProviderName) =>
    async (ctx: Context): Promise<void> => {
      const provider = configured(app)[name];
      if (!provider) return ctx.notFound(`No key for ${name} is set in the options of switchboard`);
      const isMail = /^multipart\/form-data/i.test(typeOfUnparsed(ctx.req));
      // The bytes, as they came: they are what a provider signs.
      const body = await readBoundedBody(ctx.req, {
        bytes: isMail ? MAIL_MAX : EVENTS_MAX,
        deadlineMs: DEADLINE_MS,
        budget,
      });
      switch (body.kind) {
        case 'bytes':
          return take(ctx, name, provider, body.bytes).finally(() => body.release());
        case 'too_large':
          return refuse(ctx, () => ctx.payloadTooLarge('The body is too large'));
        case 'slow':
          ctx.set('Connection', 'close');
          return refuse(ctx, () => ctx.requestTimeout('The body did not come in time'));
        case 'broken':
          // The client has disconnected and reads no answer.
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
export const emailWebhookRoutes = PROVIDERS.map((name): RouteConfig => ({
  method: 'POST',
  path: `/email/${name}`,
  handler: `email-webhooks.${name}`,
  config: { auth: false },
}));

/** Forgets, once a day on each node, what is older than any signature that still counts, twice over. */
export const scheduleForgetting = (app: App): void => {
  const task = async (): Promise<void> => {
    const db = await app.db.current();
    const oldest = Date.now() - 2 * SIGNATURE_WINDOW_MS;
    await db.table(TABLE).where('seen_at', '<', oldest).delete();
  };
  app.strapi.cron.add({ 'switchboard-email-seen': { task, options: '43 3 * * *' } });
};
