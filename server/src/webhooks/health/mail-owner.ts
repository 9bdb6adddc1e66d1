import type { Core } from '@strapi/strapi';
import { getOptions } from '../../config';
import { errorText } from '../../runtime/text';

interface EmailService {
  send(message: { to: string; subject: string; text: string }): Promise<void>;
}

interface OwnersMail {
  /** What it is about, as the log says it where the mail cannot be sent: `a webhook`. */
  about: string;
  subject: string;
  text: string;
}

/**
 * Writes to the address of the option `webhooks.notifyEmail`, where there is one; does not wait for it
 * and never throws.
 */
export const mailOwner = (strapi: Core.Strapi, { about, subject, text }: OwnersMail): void => {
  const to = getOptions(strapi).webhooks.notifyEmail;
  if (!to) return;
  const email = strapi.plugin('email')?.service('email') as EmailService | undefined;
  email?.send({ to, subject, text }).catch((error: unknown) => {
    strapi.log.error(`switchboard: the mail about ${about} could not be sent: ${errorText(error)}`);
  });
};
