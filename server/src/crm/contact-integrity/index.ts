import type { Core } from '@strapi/strapi';
import { copyParamsOf } from '../../database/own-params';
import { lockWritten, type WriteEvent } from '../../database/written-rows';
import { emailKey } from './email-key';
import { clearLeftDates, deriveDates, DERIVED_DATES, derivedDateToSet } from './derived-fields';

export { refuseTakenEmails } from './unique-emails';

const CONTACT = 'plugin::switchboard.contact';

type Data = Record<string, unknown>;

interface UpdateEvent extends WriteEvent {
  params: WriteEvent['params'] & { data?: Data | Data[]; where?: Data };
}

const complete = (uid: string, data: Data, now: Date): void => {
  if (uid === CONTACT && data.email !== undefined) data.email_key = emailKey(data.email);
  deriveDates(uid, data, now);
};

/** Sets the date of a status on the records that an update is about to bring into it. */
const deriveOnUpdate = async (strapi: Core.Strapi, event: UpdateEvent): Promise<void> => {
  const { uid } = event.model;
  const { data } = event.params;
  if (!data || Array.isArray(data)) return;
  if (uid === CONTACT && data.email !== undefined) data.email_key = emailKey(data.email);
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
  copyParamsOf(strapi, Object.keys(DERIVED_DATES));
  const onCreate = ({ model, params }: UpdateEvent): void => {
    const now = new Date();
    const rows = Array.isArray(params.data) ? params.data : [params.data ?? {}];
    for (const data of rows) complete(model.uid, data, now);
  };
  const onUpdate = (event: UpdateEvent): Promise<void> => deriveOnUpdate(strapi, event);
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
