import type { Core } from '@strapi/strapi';
import { errors, z } from '@strapi/utils';
import { parseInput } from '../../http/validation';
import { getPublisher } from '../../webhooks/publish';
import { lockRows } from '../mapping/records';
import { getSource } from '../mapping/sources';
import { crmRecords } from '../resources/crm-records';
import { keptInput } from '../resources/to-data';
import { type Payload, subjectOf } from '../rules';
import { machineReason } from '../rules/machine-traffic';
import type { EmailClicked, EmailSeen, EmailService, Recorded } from '../../public';
import { type App, appOf } from '../../app';

const id = z.string().min(1).max(64);
const moment = z.union([z.date(), z.number()]).optional();
const seen = {
  campaign: id,
  contact: id,
  userAgent: z.string().nullish(),
  ip: z.string().nullish(),
  method: z.string().nullish(),
  at: moment,
  sentAt: moment.nullable(),
};
const count = z.number().int().min(0).max(2_147_483_647);
const note = z.string().max(1_000_000).nullable().default(null);

const SCHEMAS = {
  opened: z.strictObject(seen),
  clicked: z.strictObject({ ...seen, url: z.string().min(1).max(8192) }),
  bounced: z.strictObject({
    campaign: id.nullable(),
    contact: id,
    type: z.enum(['hard', 'soft']).default('hard'),
    reason: note,
  }),
  complained: z.strictObject({ campaign: id.nullable(), contact: id }),
  campaignSent: z.strictObject({ campaign: id, total: count, sent: count, failed: count }),
  received: z.strictObject({
    contact: id,
    subject: note,
    from: note,
    text: note,
    deal: id.nullable().default(null),
  }),
};

const ALREADY_SENT: Recorded = { counted: false, because: 'already_sent' };

const epoch = (value: Date | number | null | undefined): number | null =>
  value instanceof Date ? value.getTime() : (value ?? null);

/** A site whose own contacts keep no status, or other ones, keeps them as they are. */
export const setContactStatus = async (app: App, contact: Payload, status: string) => {
  const kept = keptInput(app, getSource(app, 'contact'), { status });
  if (kept.status === undefined || contact.status === status) return contact;
  try {
    return await crmRecords(app, 'contact').update(contact.id, kept);
  } catch (error) {
    if (!(error instanceof errors.ValidationError)) throw error;
    app.log.warn(`switchboard: a contact of this site cannot have the status ${status}`);
    return contact;
  }
};

/**
 * Marks a campaign as sent, for sites that do not keep its counts or status; bypasses lifecycles, because a tracked
 * write would send counts of zero. True for one of several calls; false for a campaign without status.
 */
const markSent = async (app: App, campaignId: string, kept: Readonly<Record<string, unknown>>) => {
  const { uid, fields } = getSource(app, 'campaign');
  const attributeOf = (key: string) => fields.find(({ path }) => path === key)?.attribute ?? '';
  const values = Object.entries(kept).map(([key, value]) => [attributeOf(key), value] as const);
  if (values.length === 0) return true;
  await lockRows(app, uid, { documentId: campaignId });
  const now = await crmRecords(app, 'campaign').get(campaignId);
  if (now.status === 'sent') return false;
  await app.strapi.db
    .queryBuilder(uid)
    .where({ documentId: campaignId })
    .update({ ...Object.fromEntries(values), updatedAt: new Date() })
    .execute();
  return true;
};

export const createEmailService = ({ strapi }: { strapi: Core.Strapi }): EmailService => {
  const app = appOf(strapi);
  const send = async (event: string, data: unknown): Promise<Recorded> => {
    await getPublisher(app).publish([{ event, data, subject: subjectOf({ event, data }) }]);
    return { counted: true };
  };

  const sighting = (kind: 'open' | 'click', input: EmailSeen & Partial<EmailClicked>) =>
    app.db.retrying(async (): Promise<Recorded> => {
      const campaign = await crmRecords(app, 'campaign').get(input.campaign);
      const contact = await crmRecords(app, 'contact').get(input.contact);
      const { userAgent, ip, method, url } = input;
      const at = epoch(input.at) ?? Date.now();
      const sentAt = epoch(input.sentAt);
      const because = machineReason({ kind, userAgent, ip, method, at, sentAt });
      if (because) return { counted: false, because };
      const data = { campaign_id: campaign.id, contact };
      return kind === 'open' ? send('email.opened', data) : send('email.clicked', { ...data, url });
    });

  /** The status first, so that the event carries the contact as it is from now on. */
  const failure = (
    event: string,
    ids: { campaign: string | null; contact: string },
    status: string | null
  ) =>
    app.db.retrying(async (): Promise<Recorded> => {
      const campaign = ids.campaign ? await crmRecords(app, 'campaign').get(ids.campaign) : null;
      const before = await crmRecords(app, 'contact').get(ids.contact);
      const contact = status ? await setContactStatus(app, before, status) : before;
      if (!campaign) return { counted: false, because: 'no_campaign' };
      return send(event, { campaign_id: campaign.id, contact });
    });

  return {
    opened: async (input) => sighting('open', parseInput(SCHEMAS.opened, input)),
    clicked: async (input) => sighting('click', parseInput(SCHEMAS.clicked, input)),
    async bounced(input) {
      const { type, ...ids } = parseInput(SCHEMAS.bounced, input);
      return failure('email.bounced', ids, type === 'hard' ? 'bounced' : null);
    },
    complained: async (input) =>
      failure('email.complained', parseInput(SCHEMAS.complained, input), 'complained'),
    async campaignSent(input) {
      const { campaign: campaignId, ...counts } = parseInput(SCHEMAS.campaignSent, input);
      return app.db.retrying(async (): Promise<Recorded> => {
        const campaigns = crmRecords(app, 'campaign');
        const campaign = await campaigns.get(campaignId);
        if (campaign.status === 'sent') return ALREADY_SENT;
        const all = { status: 'sent', ...counts };
        const kept = keptInput<Record<string, unknown>>(app, getSource(app, 'campaign'), all);
        if (Object.keys(kept).length === Object.keys(all).length) {
          // The source sees the campaign become `sent`, as on a manual change.
          await campaigns.update(campaign.id, kept);
          return { counted: true };
        }
        if (!(await markSent(app, campaign.id, kept))) return ALREADY_SENT;
        const { id: sentId, title, subject } = campaign;
        return send('campaign.sent', { id: sentId, title, subject, ...counts });
      });
    },
    async received(input) {
      const { contact: contactId, deal, ...mail } = parseInput(SCHEMAS.received, input);
      return app.db.retrying(async () => {
        const contact = await crmRecords(app, 'contact').get(contactId);
        if (deal) await crmRecords(app, 'deal').get(deal);
        return send('email.received', { contact, ...mail, deal_id: deal });
      });
    },
  };
};

export const getEmailService = (app: App): EmailService =>
  app.strapi.service('plugin::switchboard.email') as unknown as EmailService;
