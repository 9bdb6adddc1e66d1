import type { Core } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import { errorText } from '../../../runtime/text';
import { inUniqueTransaction } from '../../../database/errors/duplicate';
import { crmRecords } from '../../resources/crm-records';
import { findByEmail } from '../../resources/find-by-email';
import { getEmailService, setContactStatus } from '../email-service';
import { bindToken, noteSeen } from './seen-events';
import type { ProviderEvent, SignedPost } from '../provider';

const record = async (
  strapi: Core.Strapi,
  contact: string,
  event: ProviderEvent
): Promise<unknown> => {
  const email = getEmailService(strapi);
  const { campaign } = event;
  switch (event.type) {
    case 'opened':
    case 'clicked': {
      // Without the CRM's campaign it is no campaign email.
      if (!campaign || event.machine) return undefined;
      const { userAgent, ip, at, sentAt } = event;
      const seen = { campaign, contact, userAgent, ip, at: at || undefined, sentAt };
      return event.type === 'opened'
        ? email.opened(seen)
        : email.clicked({ ...seen, url: event.url });
    }
    case 'bounced': {
      const type = event.hard ? 'hard' : 'soft';
      return email.bounced({ campaign, contact, type, reason: event.reason });
    }
    case 'complained':
      return email.complained({ campaign, contact });
    case 'unsubscribed':
      return setContactStatus(
        strapi,
        await crmRecords(strapi, 'contact').get(contact),
        'unsubscribed'
      );
    case 'received': {
      const { subject, from, text } = event;
      return email.received({ contact, subject, from, text });
    }
  }
};

/**
 * Records what a provider posted, each in a transaction of its own: one that cannot be recorded (an
 * address that is no contact, a campaign that is gone) does not hold up the others, nor makes the
 * provider post all of them again.
 * @returns how many were taken; null where the signature was used for something else before.
 */
export const receive = async (
  strapi: Core.Strapi,
  provider: string,
  { events, once }: SignedPost,
  now: number
): Promise<number | null> => {
  if (once) {
    const bound = await inUniqueTransaction(strapi, () => bindToken(strapi, provider, once, now));
    if (!bound) return null;
  }
  let taken = 0;
  for (const event of events) {
    try {
      const isTaken = await inUniqueTransaction(strapi, async () => {
        if (!(await noteSeen(strapi, provider, event.id, now))) return false;
        const contact = await findByEmail(strapi, event.email);
        if (!contact) return false;
        await record(strapi, contact, event);
        return true;
      });
      if (isTaken) taken += 1;
    } catch (error) {
      if (!(error instanceof errors.ApplicationError || error instanceof errors.HttpError)) {
        throw error;
      }
      strapi.log.warn(
        `switchboard: what ${provider} posted (${event.type}) was left out: ${errorText(error)}`
      );
    }
  }
  return taken;
};
