import type { Core, UID } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import type { Page } from '../../../../shared/contracts/webhooks';
import { inTransaction } from '../../database/connection';
import { isDuplicate } from '../../database/errors/duplicate';
import { inRetriedTransaction, withTransientRetry } from '../../database/retry';
import { COUNT_LIMIT, offsetOf, type PageRequest, paginationMeta } from '../../http/pagination';
import type { Kind } from '../rules/kind-names';
import type { Entry } from '../mapping/mapping';
import { eventsAbout, getInspected } from '../mapping/registry';
import { type Where } from '../../database/matching-documents';
import { binWhere, countedWhere, readRows } from '../mapping/records';
import { serialize, tagsOf } from '../change-capture/mapping/serialize';
import type { Payload, TagRef } from '../rules/payload';
import type { WatchedSource } from '../mapping/watched-types';
import { inWriteContext } from '../capture/write-context';
import { emailKey } from '../contact-integrity/email-key';
import { withEmailLock } from '../contact-integrity/email-lock';
import { EmailTakenError } from '../contact-integrity/unique-emails';
import { contactWhere } from './find-contacts';
import { toData } from './to-data';
import { DOCUMENT_ID } from './values';

type Input = Readonly<Record<string, unknown>>;

/** Reads and writes CRM objects of one kind, wherever the site keeps them. */
export interface CrmRecords {
  list(query: PageRequest & Record<string, unknown>): Promise<Page<Payload>>;
  /** @throws NotFoundError for an unknown id. */
  get(id: string): Promise<Payload>;
  find(id: string): Promise<Payload | null>;
  create(input: Input): Promise<Payload>;
  update(id: string, input: Input): Promise<Payload>;
  /** For good. */
  remove(id: string): Promise<void>;
}

const LABELS: Readonly<Record<Kind, string>> = {
  contact: 'Contact',
  tag: 'Tag',
  company: 'Company',
  deal: 'Deal',
  'deal-stage': 'Deal stage',
  task: 'Task',
  campaign: 'Campaign',
};

const EVERYTHING = { keys: null, tags: false };

const PAGING = new Set(['page', 'per_page', 'trashed', 'tag_id', 'q']);

const filterOf = (watched: WatchedSource, key: string, value: unknown): Where => {
  const { source } = watched;
  const field = source.fields.find(({ path }) => path === key);
  if (!field?.attribute) return { id: -1 };
  if (field.shape?.type === 'relation') return { [field.attribute]: { documentId: value } };
  if (key !== 'email') return { [field.attribute]: value };
  return source.own ? { email_key: emailKey(value) } : { [field.attribute]: { $eqi: value } };
};

const trashWhere = (watched: WatchedSource, trashed: unknown): Where[] =>
  trashed === undefined ? [] : binWhere(watched, trashed === 'true');

/**
 * Nobody else changes a record from here to the end of the transaction, and what is read of it from
 * here on is what the last one left: two writers of one contact would else compare with the same past
 * and say the same twice. The transaction's first statement: MySQL goes on reading what was there when
 * it first read.
 */
const lockRecord = async (strapi: Core.Strapi, uid: string, id: string): Promise<void> => {
  if (!DOCUMENT_ID.test(id)) return;
  await strapi.db
    .queryBuilder(uid)
    .init({ select: ['id'], where: { documentId: id }, orderBy: { id: 'asc' } })
    .forUpdate()
    .execute();
};

export const crmRecords = (strapi: Core.Strapi, kind: Kind): CrmRecords => {
  const watched = getInspected(strapi, kind);
  const { source, uid, tagSource } = watched;
  const documents = () => strapi.documents(uid as UID.ContentType);
  // With draft and publish, the CRM's own routes write what counts: the published version.
  const status = watched.draftAndPublish ? ({ status: 'published' } as const) : {};

  const rowOf = async (id: string): Promise<Entry | undefined> => {
    if (!DOCUMENT_ID.test(id)) return undefined;
    return (await readRows(strapi, watched, { documentId: id }, EVERYTHING))[0];
  };

  const find = async (id: string): Promise<Payload | null> => {
    const row = await rowOf(id);
    return row ? serialize(source, row) : null;
  };

  const get = async (id: string): Promise<Payload> => {
    const payload = await find(id);
    if (!payload) throw new errors.NotFoundError(`${LABELS[kind]} not found`);
    return payload;
  };

  /** One transaction; for a contact of ours it begins with the lock of its address, if one is given. */
  const write = async <T>(work: () => Promise<T>, input: Input = {}): Promise<T> => {
    const email = kind === 'contact' && source.own ? input.email : null;
    try {
      const run = () =>
        inWriteContext(strapi, { compound: false, events: eventsAbout(strapi, uid) }, () =>
          withEmailLock(strapi, email, () => inTransaction(strapi, work))
        );
      return await (strapi.db.inTransaction() ? run() : withTransientRetry(run));
    } catch (error) {
      // A site's own type may have a unique index of its own.
      if (kind === 'contact' && isDuplicate(error)) throw new EmailTakenError();
      throw error;
    }
  };

  return {
    find,
    get,
    async list(query) {
      const filters = Object.entries(query).filter(
        ([key, value]) => !PAGING.has(key) && value !== undefined
      );
      const where: Where = {
        $and: [
          await countedWhere(strapi, watched),
          ...trashWhere(watched, query.trashed),
          ...filters.map(([key, value]) => filterOf(watched, key, value)),
          ...(typeof query.q === 'string' ? [contactWhere(strapi, watched, query.q)] : []),
          ...(query.tag_id && source.tags ? [{ [source.tags]: { documentId: query.tag_id } }] : []),
        ],
      };
      const rows = await readRows(strapi, watched, where, EVERYTHING, {
        orderBy: { id: 'asc' },
        limit: query.per_page,
        offset: offsetOf(query),
      });
      const total = await strapi.db.query(uid as UID.ContentType).count({ where });
      const meta = paginationMeta(query, Math.min(total, COUNT_LIMIT + 1));
      return { data: rows.map((row) => serialize(source, row)), meta };
    },
    create: (input) =>
      write(async () => {
        const data = await toData(strapi, source, tagSource.uid, input);
        const { documentId } = await documents().create({ data, ...status } as never);
        return get(documentId);
      }, input),
    update: (id, input) =>
      write(async () => {
        await lockRecord(strapi, uid, id);
        await get(id);
        const data = await toData(strapi, source, tagSource.uid, input);
        await documents().update({ documentId: id, data, ...status } as never);
        return get(id);
      }, input),
    async remove(id) {
      await write(async () => {
        await lockRecord(strapi, uid, id);
        await get(id);
        await documents().delete({ documentId: id, locale: '*' } as never);
      });
    },
  };
};

/** The tags of a contact. */
export const tagsOfContact = async (strapi: Core.Strapi, id: string): Promise<TagRef[]> => {
  const watched = getInspected(strapi, 'contact');
  const where = { documentId: id };
  const [row] = DOCUMENT_ID.test(id)
    ? await readRows(strapi, watched, where, { keys: new Set(), tags: true })
    : [];
  if (!row) throw new errors.NotFoundError('Contact not found');
  return tagsOf(watched.source, watched.tagSource, row);
};

/** Adds a tag to a contact or takes it off; doing it twice changes nothing. */
export const changeTag = async (
  strapi: Core.Strapi,
  contactId: string,
  tagId: string,
  change: 'connect' | 'disconnect'
): Promise<Payload> => {
  const contacts = crmRecords(strapi, 'contact');
  const { source, uid, draftAndPublish } = getInspected(strapi, 'contact');
  return inRetriedTransaction(strapi, async () => {
    await lockRecord(strapi, uid, contactId);
    const contact = await contacts.get(contactId);
    await crmRecords(strapi, 'tag').get(tagId);
    if (!source.tags) throw new errors.NotFoundError('Contacts of this site have no tags');
    const data = { [source.tags]: { [change]: [tagId] } };
    await strapi.documents(uid as UID.ContentType).update({
      documentId: contact.id,
      data,
      ...(draftAndPublish && { status: 'published' }),
    } as never);
    return contacts.get(contactId);
  });
};
