import type { Core } from '@strapi/strapi';
import { emailKey } from './email-key';
import { clearLeftDates, deriveDates, DERIVED_DATES, derivedDateToSet } from './derived-fields';

export { refuseTakenEmails } from './unique-emails';

const CONTACT = 'plugin::switchboard.contact';

type Data = Record<string, unknown>;

interface WriteEvent {
  model: { uid: string };
  params: { data?: Data | Data[]; where?: Data };
}

const complete = (uid: string, data: Data, now: Date): void => {
  if (uid === CONTACT && data.email !== undefined) data.email_key = emailKey(data.email);
  deriveDates(uid, data, now);
};

/** Sets the date of a status on the records that an update is about to bring into it. */
const deriveOnUpdate = async (strapi: Core.Strapi, event: WriteEvent): Promise<void> => {
  const { uid } = event.model;
  const { data, where } = event.params;
  if (!data || Array.isArray(data)) return;
  if (uid === CONTACT && data.email !== undefined) data.email_key = emailKey(data.email);
  clearLeftDates(uid, data);
  const derived = derivedDateToSet(uid, data);
  if (!derived) return;
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
  const onCreate = ({ model, params }: WriteEvent): void => {
    const now = new Date();
    const rows = Array.isArray(params.data) ? params.data : [params.data ?? {}];
    for (const data of rows) complete(model.uid, data, now);
  };
  const onUpdate = (event: WriteEvent): Promise<void> => deriveOnUpdate(strapi, event);
  const subscriber = {
    models: Object.keys(DERIVED_DATES),
    beforeCreate: onCreate,
    beforeCreateMany: onCreate,
    beforeUpdate: onUpdate,
    beforeUpdateMany: onUpdate,
  };
  strapi.db.lifecycles.subscribe(
    subscriber as unknown as Parameters<typeof strapi.db.lifecycles.subscribe>[0]
  );
};
