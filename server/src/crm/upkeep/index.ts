import type { Core } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import { emailKey } from './email-key';
import { clearLeft, stampNew, STAMPS, stampToSet } from './stamps';

const CONTACT = 'plugin::switchboard.contact';

type Data = Record<string, unknown>;

interface WriteEvent {
  model: { uid: string };
  params: { data?: Data | Data[]; where?: Data };
}

const complete = (uid: string, data: Data, now: Date): void => {
  if (uid === CONTACT && data.email !== undefined) data.email_key = emailKey(data.email);
  stampNew(uid, data, now);
};

/** Sets the date of a status on the records that an update is about to bring into it. */
const stampExisting = async (strapi: Core.Strapi, event: WriteEvent): Promise<void> => {
  const { uid } = event.model;
  const { data, where } = event.params;
  if (!data || Array.isArray(data)) return;
  if (uid === CONTACT && data.email !== undefined) data.email_key = emailKey(data.email);
  clearLeft(uid, data);
  const stamp = stampToSet(uid, data);
  if (!stamp) return;
  const others = { $or: [{ [stamp.status]: { $ne: stamp.value } }, { [stamp.status]: null }] };
  await strapi.db
    .queryBuilder(uid)
    .where(where ? { $and: [where, others] } : others)
    .update({ [stamp.date]: new Date() })
    .execute();
};

/** Keeps the derived columns of the plugin's own types. */
export const keepDerivedColumns = (strapi: Core.Strapi): void => {
  const onCreate = ({ model, params }: WriteEvent): void => {
    const now = new Date();
    const rows = Array.isArray(params.data) ? params.data : [params.data ?? {}];
    for (const data of rows) complete(model.uid, data, now);
  };
  const onUpdate = (event: WriteEvent): Promise<void> => stampExisting(strapi, event);
  const subscriber = {
    models: Object.keys(STAMPS),
    beforeCreate: onCreate,
    beforeCreateMany: onCreate,
    beforeUpdate: onUpdate,
    beforeUpdateMany: onUpdate,
  };
  strapi.db.lifecycles.subscribe(
    subscriber as unknown as Parameters<typeof strapi.db.lifecycles.subscribe>[0]
  );
};

/** A 400 that names the field, in the form in which the content manager shows it beside it. */
export const emailTaken = (): errors.ValidationError =>
  new errors.ValidationError('email: belongs to another contact', {
    errors: [{ path: ['email'], message: 'belongs to another contact', name: 'ValidationError' }],
  });

interface DocumentContext {
  uid: string;
  action: string;
  params: { documentId?: string; data?: Data };
}

/**
 * Refuses a second contact of one address with an answer that a person can read. The unique index
 * is what makes it sure; this only comes before it.
 */
export const refuseTakenEmails = (strapi: Core.Strapi): void => {
  strapi.documents.use(async (context, next) => {
    const { uid, action, params } = context as unknown as DocumentContext;
    if (uid !== CONTACT || !['create', 'update', 'clone'].includes(action)) return next();
    if (action === 'clone' && params.data?.email === undefined) {
      params.data = { ...params.data, email: null };
    }
    const key = emailKey(params.data?.email);
    if (key) {
      const taken = (await strapi.db
        .queryBuilder(CONTACT)
        .init({ select: ['id', 'documentId'], where: { email_key: key }, limit: 1 })
        .execute()) as { documentId: string }[];
      const isSelf = action === 'update' && taken[0]?.documentId === params.documentId;
      if (taken.length > 0 && !isSelf) throw emailTaken();
    }
    return next();
  });
};
