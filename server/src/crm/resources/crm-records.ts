import { randomBytes } from 'node:crypto';
import type { UID } from '@strapi/strapi';
import { type CountryCode, parsePhoneNumberFromString } from 'libphonenumber-js';
import { errors } from '@strapi/utils';
import type { Page } from '../../../../shared/contracts/webhooks';
import { whereContains, writtenDigits } from '../../database/contains';
import { isDuplicate, isReferenceGone, withTransientRetry } from '../../database/retry';
import type { Where } from '../../database/written-rows';
import { COUNT_LIMIT, offsetOf, type PageRequest, paginationMeta } from '../../http/pagination';
import { fieldError } from '../../http/validation';
import { subscribersOf } from '../../webhooks/subscriptions';
import {
  emailKey,
  EmailTakenError,
  isSlugTaken,
  SLUG_MAX,
  withEmailLock,
} from '../contact-integrity';
import { DOCUMENT_ID, KIND_DEFINITIONS } from '../mapping/kinds';
import { binWhere, countedWhere, lockRows, readRows, serialize, tagsOf } from '../mapping/records';
import {
  columnOf,
  eventsAbout,
  getInspected,
  getSource,
  type WatchedSource,
} from '../mapping/sources';
import type { Kind, Payload, TagRef } from '../rules';
import { toData } from './to-data';
import type { App } from '../../app';

const SEARCHED = ['first_name', 'last_name', 'name', 'email', 'phone'];
const TEXTS: ReadonlySet<string> = new Set(['string', 'text', 'email', 'uid', 'enumeration']);

const PHONE = /^[+\d\s()./-]+$/;
/** Fewer would be in nearly every number. */
const LEAST_DIGITS = 3;

/** The digits of a phone number however it begins; null if it is none. */
const phoneDigits = (text: string, country: string | undefined): string | null => {
  if (!PHONE.test(text)) return null;
  const international = text.replace(/^00/, '+');
  const parsed = parsePhoneNumberFromString(international, country as CountryCode | undefined);
  const digits = parsed?.isValid()
    ? parsed.nationalNumber
    : text.replace(/\D/g, '').replace(/^0+/, '');
  return digits.length < LEAST_DIGITS ? null : digits;
};

/** Finds contacts with every word, or a part of a phone number; scans all. docs/management-api.md#finding-contacts */
const contactWhere = (app: App, watched: WatchedSource, text: string): Where => {
  const columns = SEARCHED.flatMap((path) => columnOf(app, watched, path) ?? []);
  const texts = columns.filter(({ shape }) => TEXTS.has(shape.type)).map(({ column }) => column);
  const phone = columnOf(app, watched, 'phone')?.column;
  const digits = phoneDigits(text, app.options.pos.country);
  const { tableName } = app.strapi.db.metadata.get(watched.uid);
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

/** Reads and writes CRM objects of one kind, wherever the site keeps them. */
class CrmRecords {
  private readonly watched: WatchedSource;

  constructor(
    private readonly app: App,
    private readonly kind: Kind
  ) {
    this.watched = getInspected(app, kind);
  }

  async list(query: PageRequest & Record<string, unknown>): Promise<Page<Payload>> {
    const { app, watched } = this;
    const { source, uid } = watched;
    const filters = Object.entries(query).filter(
      ([key, value]) => !PAGING.has(key) && value !== undefined
    );
    const where: Where = {
      $and: [
        await countedWhere(app, watched),
        ...(query.trashed === undefined ? [] : binWhere(watched, query.trashed === 'true')),
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
  }

  async find(id: string): Promise<Payload | null> {
    if (!DOCUMENT_ID.test(id)) return null;
    const [row] = await readRows(this.app, this.watched, { documentId: id }, EVERYTHING);
    return row ? serialize(this.watched.source, row) : null;
  }

  async get(id: string): Promise<Payload> {
    const payload = await this.find(id);
    if (!payload) throw new errors.NotFoundError(`${KIND_DEFINITIONS[this.kind].label} not found`);
    return payload;
  }

  create(input: Input): Promise<Payload> {
    return this.write(input, async () => {
      const data = await toData(this.app, this.watched, input);
      const { documentId } = await this.documents().create({ data, ...this.status() } as never);
      return this.get(documentId);
    });
  }

  update(id: string, input: Input): Promise<Payload> {
    return this.write(input, async () => {
      await this.lock(id);
      const data = await toData(this.app, this.watched, input);
      await this.documents().update({ documentId: id, data, ...this.status() } as never);
      return this.get(id);
    });
  }

  /** For good. */
  async remove(id: string): Promise<void> {
    await this.write({}, async () => {
      await this.lock(id);
      await this.documents().delete({ documentId: id, locale: '*' } as never);
    });
  }

  /** Adds a tag to a contact or takes it off; doing it twice changes nothing. */
  changeTag(id: string, tagId: string, change: 'connect' | 'disconnect'): Promise<Payload> {
    const { tags } = this.watched.source;
    return this.app.db.retrying(async () => {
      await this.lock(id);
      await crmRecords(this.app, 'tag').get(tagId);
      if (!tags) throw new errors.NotFoundError('Contacts of this site have no tags');
      const data = { [tags]: { [change]: [tagId] } };
      await this.documents().update({ documentId: id, data, ...this.status() } as never);
      return this.get(id);
    });
  }

  private documents() {
    return this.app.strapi.documents(this.watched.uid as UID.ContentType);
  }

  /** With draft and publish, the CRM's own routes write what counts: the published version. */
  private status(): { status?: 'published' } {
    return this.watched.draftAndPublish ? { status: 'published' } : {};
  }

  /**
   * Locks a record until the transaction ends; otherwise two writers compare with one state and both send its events.
   * Must be the first statement, because MySQL keeps the snapshot of its first read.
   * @throws NotFoundError for an unknown id
   */
  private async lock(id: string): Promise<void> {
    if (DOCUMENT_ID.test(id)) await lockRows(this.app, this.watched.uid, { documentId: id });
    await this.get(id);
  }

  /** One transaction; for a contact of ours it begins with the lock of its address, if one is given. */
  private async write<T>(input: Input, work: () => Promise<T>): Promise<T> {
    const { app, kind, watched } = this;
    const email = kind === 'contact' && watched.source.own ? input.email : null;
    const run = () => {
      subscribersOf(app).prefetch(eventsAbout(app, watched.uid));
      return withEmailLock(app, email, () => app.db.transaction(work));
    };
    try {
      return await (app.db.inTransaction() ? run() : withTransientRetry(run));
    } catch (error) {
      // A site's own type may have a unique index of its own.
      if (kind === 'contact' && isDuplicate(error)) throw new EmailTakenError();
      // Once more: then it is refused by the name of the field.
      if (isReferenceGone(error) && !app.db.inTransaction()) return run();
      throw error;
    }
  }
}

export const crmRecords = (app: App, kind: Kind): CrmRecords => new CrmRecords(app, kind);

export const tagsOfContact = async (app: App, id: string): Promise<TagRef[]> => {
  const watched = getInspected(app, 'contact');
  const where = { documentId: id };
  const [row] = DOCUMENT_ID.test(id)
    ? await readRows(app, watched, where, { keys: new Set(), tags: true })
    : [];
  if (!row) throw new errors.NotFoundError('Contact not found');
  return tagsOf(watched, row);
};

/** A free slug for a tag of that name: the host makes slugs only in the admin panel. */
export const freeSlug = async (app: App, name: string): Promise<string | undefined> => {
  const { uid, own } = getSource(app, 'tag');
  if (!own) return undefined;
  const service = app.strapi.plugin('content-manager')?.service('uid') as
    { generateUIDField(of: object): Promise<string> } | undefined;
  if (!service) throw new errors.ValidationError('slug: is required');
  const of = { contentTypeUID: uid, field: 'slug', data: { name } };
  const slug = await service.generateUIDField(of);
  // One letter of a name may be several of a slug: "ß" is "ss".
  if (slug.length > SLUG_MAX) {
    throw fieldError('name', `makes a slug of more than ${SLUG_MAX} characters`);
  }
  return slug;
};

const TRIES = 10;

/**
 * Creates a tag, with a free slug if none is given.
 * @param known finds a tag of this name that another writer may have created meanwhile
 * @throws ValidationError (400) if the given slug is taken
 */
export const createTag = async (
  app: App,
  input: Input,
  known?: () => Promise<string | null>
): Promise<Payload | { id: string }> => {
  for (let attempt = 1; ; attempt += 1) {
    const free = input.slug === undefined ? await freeSlug(app, String(input.name)) : undefined;
    // After the slug: one that another writer's tag has taken meanwhile is not free, and this look finds that tag.
    const id = free === undefined ? null : await known?.();
    if (id) return { id };
    // A transaction that keeps its first snapshot finds the same slug free again.
    const made = free && attempt > 2 ? `${free}-${randomBytes(3).toString('hex')}` : free;
    const data = made === undefined ? input : { ...input, slug: made };
    try {
      const create = () => crmRecords(app, 'tag').create(data);
      return await (app.db.inTransaction() ? app.db.savepoint(create) : create());
    } catch (error) {
      if (!isSlugTaken(error) || free === undefined || attempt >= TRIES) throw error;
    }
  }
};
