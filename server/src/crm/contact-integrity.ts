import type { Core } from '@strapi/strapi';
import { copyParamsOf } from '../database/host-writes';
import { lockWritten, type WriteEvent } from '../database/written-rows';
import { emailKey } from './contact-integrity/email-key';
import { slugKey, TAG } from './tag-slugs';
import {
  clearLeftDates,
  deriveDates,
  DERIVED_DATES,
  derivedDateToSet,
} from './contact-integrity/derived-fields';

export { refuseTakenEmails } from './contact-integrity/unique-emails';
export { refuseTakenSlugs, settleTagSlugs } from './tag-slugs';

const CONTACT = 'plugin::switchboard.contact';

type Data = Record<string, unknown>;

interface UpdateEvent extends WriteEvent {
  params: WriteEvent['params'] & { data?: Data | Data[]; where?: Data };
}

/** The columns that the database compares for uniqueness. */
const giveKeys = (uid: string, data: Data): void => {
  if (uid === CONTACT && data.email !== undefined) data.email_key = emailKey(data.email);
  if (uid === TAG && data.slug !== undefined) data.slug_key = slugKey(data.slug);
};

const complete = (uid: string, data: Data, now: Date): void => {
  giveKeys(uid, data);
  deriveDates(uid, data, now);
};

/** Sets the date of a status on the records that an update is about to bring into it. */
const deriveOnUpdate = async (strapi: Core.Strapi, event: UpdateEvent): Promise<void> => {
  const { uid } = event.model;
  const { data } = event.params;
  if (!data || Array.isArray(data)) return;
  giveKeys(uid, data);
  clearLeftDates(uid, data);
  const derived = derivedDateToSet(uid, data);
  if (!derived) return;
  // Of several that match, the host may change one.
  await lockWritten(strapi, event);
  const { where } = event.params;
  const others = {
    $or: [{ [derived.status]: { $ne: derived.value } }, { [derived.status]: null }],
  };
  await strapi.db
    .queryBuilder(uid)
    .where(where ? { $and: [where, others] } : others)
    .update({ [derived.date]: new Date() })
    .execute();
};

/** Keeps the derived columns of the plugin's own types. */
export const keepDerivedColumns = (strapi: Core.Strapi): void => {
  const models = [...Object.keys(DERIVED_DATES), TAG];
  copyParamsOf(strapi, models);
  const onCreate = ({ model, params }: UpdateEvent): void => {
    const now = new Date();
    const rows = Array.isArray(params.data) ? params.data : [params.data ?? {}];
    for (const data of rows) complete(model.uid, data, now);
  };
  const onUpdate = (event: UpdateEvent): Promise<void> => deriveOnUpdate(strapi, event);
  const subscriber = {
    models,
    beforeCreate: onCreate,
    beforeCreateMany: onCreate,
    beforeUpdate: onUpdate,
    beforeUpdateMany: onUpdate,
  };
  strapi.db.lifecycles.subscribe(
    subscriber as unknown as Parameters<typeof strapi.db.lifecycles.subscribe>[0]
  );
};
