import type { UID } from '@strapi/strapi';
import { type CountryCode, parsePhoneNumberFromString } from 'libphonenumber-js';
import { errors } from '@strapi/utils';
import type { Page } from '../../../../shared/contracts/webhooks';
import { whereContains, writtenDigits } from '../../database/contains';
import { isDuplicate, withTransientRetry } from '../../database/retry';
import type { Where } from '../../database/written-rows';
import { COUNT_LIMIT, offsetOf, type PageRequest, paginationMeta } from '../../http/pagination';
import { inWriteContext } from '../write-context';
import { emailKey, EmailTakenError, withEmailLock } from '../contact-integrity';
import type { Entry } from '../mapping/mapping';
import { binWhere, countedWhere, readRows, serialize, tagsOf } from '../mapping/records';
import { eventsAbout, getInspected } from '../mapping/registry';
import type { WatchedSource } from '../mapping/watched-types';
import type { Kind, Payload, TagRef } from '../rules/types';
import { DOCUMENT_ID } from './inputs';
import { toData } from './to-data';
import type { App } from '../../app';

const SEARCHED: ReadonlySet<string> = new Set([
  ...['first_name', 'last_name', 'name', 'email', 'phone'],
]);
const TEXTS: ReadonlySet<string> = new Set(['string', 'text', 'email', 'uid', 'enumeration']);

const PHONE = /^[+\d\s()./-]+$/;
/** Fewer would be in nearly every number. */
const LEAST_DIGITS = 3;

/** What a phone number has in it however it begins; null for what is none. */
const phoneDigits = (text: string, country: string | undefined): string | null => {
  if (!PHONE.test(text)) return null;
  const international = text.replace(/^00/, '+');
  const parsed = parsePhoneNumberFromString(international, country as CountryCode | undefined);
  const digits = parsed?.isValid()
    ? parsed.nationalNumber
    : text.replace(/\D/g, '').replace(/^0+/, '');
  return digits.length < LEAST_DIGITS ? null : digits;
};

/**
 * The condition that finds contacts by a text: each of its words is in a name, the e-mail address or the
 * phone number, in any case; or it is a phone number, or a part of one, however it is written. Reads
 * every contact. docs/management-api.md#finding-contacts
 */
const contactWhere = (app: App, { uid, source }: WatchedSource, text: string): Where => {
  const { tableName, attributes } = app.strapi.db.metadata.get(uid);
  const columns = source.fields.flatMap(({ path, attribute, shape }) => {
    if (!attribute || !shape || !SEARCHED.has(path)) return [];
    const { columnName } = attributes[attribute] as { columnName?: string };
    return [{ path, column: columnName ?? attribute, isText: TEXTS.has(shape.type) }];
  });
  const texts = columns.flatMap(({ column, isText }) => (isText ? column : []));
  const phone = columns.find(({ path }) => path === 'phone')?.column;
  const digits = phoneDigits(text, app.options.pos.country);
  const found = app.db.pool.table(tableName).select('id');
  found.where((any) => {
    if (texts.length > 0)
      any.orWhere((all) => {
        for (const word of text.split(/\s+/)) whereContains(app.db, all, texts, word);
      });
    if (phone && digits) {
      const { sql, bindings } = writtenDigits(phone);
      any.orWhereRaw(`${sql} LIKE ?`, [...bindings, `%${digits}%`]);
    }
  });
  const isSearchable = texts.length > 0 || (phone !== undefined && digits !== null);
  return { id: isSearchable ? { $in: found } : -1 };
};

type Input = Readonly<Record<string, unknown>>;

/** Reads and writes CRM objects of one kind, wherever the site keeps them. */
interface CrmRecords {
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
const lockRecord = async (app: App, uid: string, id: string): Promise<void> => {
  if (!DOCUMENT_ID.test(id)) return;
  await app.strapi.db
    .queryBuilder(uid)
    .init({ select: ['id'], where: { documentId: id }, orderBy: { id: 'asc' } })
    .forUpdate()
    .execute();
};

export const crmRecords = (app: App, kind: Kind): CrmRecords => {
  const watched = getInspected(app, kind);
  const { source, uid, tagSource } = watched;
  const documents = () => app.strapi.documents(uid as UID.ContentType);
  // With draft and publish, the CRM's own routes write what counts: the published version.
  const status = watched.draftAndPublish ? ({ status: 'published' } as const) : {};

  const rowOf = async (id: string): Promise<Entry | undefined> => {
    if (!DOCUMENT_ID.test(id)) return undefined;
    return (await readRows(app, watched, { documentId: id }, EVERYTHING))[0];
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
        inWriteContext(app, { compound: false, events: eventsAbout(app, uid) }, () =>
          withEmailLock(app, email, () => app.db.transaction(work))
        );
      return await (app.db.inTransaction() ? run() : withTransientRetry(run));
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
          await countedWhere(app, watched),
          ...trashWhere(watched, query.trashed),
          ...filters.map(([key, value]) => filterOf(watched, key, value)),
          ...(typeof query.q === 'string' ? [contactWhere(app, watched, query.q)] : []),
          ...(query.tag_id && source.tags ? [{ [source.tags]: { documentId: query.tag_id } }] : []),
        ],
      };
      const rows = await readRows(app, watched, where, EVERYTHING, {
        orderBy: { id: 'asc' },
        limit: query.per_page,
        offset: offsetOf(query),
      });
      const total = await app.strapi.db.query(uid as UID.ContentType).count({ where });
      const meta = paginationMeta(query, Math.min(total, COUNT_LIMIT + 1));
      return { data: rows.map((row) => serialize(source, row)), meta };
    },
    create: (input) =>
      write(async () => {
        const data = await toData(app, source, tagSource.uid, input);
        const { documentId } = await documents().create({ data, ...status } as never);
        return get(documentId);
      }, input),
    update: (id, input) =>
      write(async () => {
        await lockRecord(app, uid, id);
        await get(id);
        const data = await toData(app, source, tagSource.uid, input);
        await documents().update({ documentId: id, data, ...status } as never);
        return get(id);
      }, input),
    async remove(id) {
      await write(async () => {
        await lockRecord(app, uid, id);
        await get(id);
        await documents().delete({ documentId: id, locale: '*' } as never);
      });
    },
  };
};

/** The tags of a contact. */
export const tagsOfContact = async (app: App, id: string): Promise<TagRef[]> => {
  const watched = getInspected(app, 'contact');
  const where = { documentId: id };
  const [row] = DOCUMENT_ID.test(id)
    ? await readRows(app, watched, where, { keys: new Set(), tags: true })
    : [];
  if (!row) throw new errors.NotFoundError('Contact not found');
  return tagsOf(watched.source, watched.tagSource, row);
};

/** Adds a tag to a contact or takes it off; doing it twice changes nothing. */
export const changeTag = async (
  app: App,
  contactId: string,
  tagId: string,
  change: 'connect' | 'disconnect'
): Promise<Payload> => {
  const contacts = crmRecords(app, 'contact');
  const { source, uid, draftAndPublish } = getInspected(app, 'contact');
  return app.db.retrying(async () => {
    await lockRecord(app, uid, contactId);
    const contact = await contacts.get(contactId);
    await crmRecords(app, 'tag').get(tagId);
    if (!source.tags) throw new errors.NotFoundError('Contacts of this site have no tags');
    const data = { [source.tags]: { [change]: [tagId] } };
    await app.strapi.documents(uid as UID.ContentType).update({
      documentId: contact.id,
      data,
      ...(draftAndPublish && { status: 'published' }),
    } as never);
    return contacts.get(contactId);
  });
};
