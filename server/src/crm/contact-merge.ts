import { isDeepStrictEqual } from 'node:util';
import type { UID } from '@strapi/strapi';
import { errors, z } from '@strapi/utils';
import type { Context } from 'koa';
import { isMergedValue, mergedValue, type MergedShape } from '../../../shared/contact-merge';
import {
  type ContentPermissions,
  contentPermissions,
  judgedRelations,
  requireAdminUser,
} from '../access/current-admin-user';
import { endpoint, type Endpoints } from '../http/endpoint';
import { fieldError } from '../http/validation';
import { Refused } from '../runtime/refusal';
import { inUnitOfWork, trackNamedDocument } from './capture';
import { lockEmails, purchasesOf } from './contact-integrity';
import { Customers } from './customers';
import { BAG_MAX, DOCUMENT_ID } from './mapping/kinds';
import { lockRows, selectRows } from './mapping/records';
import { columnOf, type Entry, eventsAbout, getInspected } from './mapping/sources';
import { readUnits } from './rules/lifetime-value';
import type { App } from '../app';

type Morph = Record<'idColumn' | 'typeColumn', { name: string }>;

/** A relation as the host's database layer knows it; components, dynamic zones and media are relations there. */
interface Relation {
  type: string;
  relation: string;
  target?: string;
  inversedBy?: string;
  mappedBy?: string;
  morphColumn?: Morph;
  joinTable?: { name: string; joinColumn: { name: string }; on?: object; morphColumn?: Morph };
}

const FILE = 'plugin::upload.file';
const NOTED_BY_HOST = /^(createdBy|updatedBy|localizations)$/;

const relationsOf = ({ strapi }: App, uid: string): [name: string, Relation][] => {
  const { attributes } = strapi.db.metadata.get(uid);
  return Object.entries(attributes as unknown as Record<string, Relation>).filter(
    ([name, { type }]) => type === 'relation' && !NOTED_BY_HOST.test(name)
  );
};

const isToOne = ({ relation }: Relation): boolean => /^(one|many)ToOne$/.test(relation);

interface Merge {
  app: App;
  uid: UID.ContentType;
  kept: Entry;
  other: Entry;
}

/** Moves relations that other types have to contacts one way; contacts know nothing of them. */
const moveOneWay = async ({ app, uid, kept, other }: Merge): Promise<void> => {
  const { db } = app.strapi;
  for (const { uid: type } of db.metadata.values()) {
    for (const [name, relation] of relationsOf(app, type)) {
      const { target, inversedBy, mappedBy, joinTable } = relation;
      if (target !== uid || inversedBy || mappedBy || joinTable?.on) continue;
      const query = db.query(type as UID.ContentType);
      const where = { [name]: { id: other.id } };
      const rows = (await query.findMany({ select: ['id'], where })) as Entry[];
      const many = { connect: [{ id: kept.id }], disconnect: [{ id: other.id }] };
      const data = { [name]: isToOne(relation) ? kept.id : many };
      for (const { id } of rows.filter((row) => type !== uid || row.id !== kept.id)) {
        await query.update({ where: { id }, data } as never);
      }
    }
  }
};

/** True for components and files: they are moved, not shared, to a field that is empty. */
const isPart = ({ relation, target, joinTable }: Relation): boolean =>
  Boolean(joinTable?.on) ||
  relation === 'morphOne' ||
  (relation === 'morphMany' && target === FILE);

/** The relations and the fields with parts that the contact which is kept gets from the other one. */
const unitedRelations = async ({ app, uid, kept, other }: Merge) => {
  const data: Record<string, unknown> = {};
  const parts: string[] = [];
  const idsOf = async (row: Entry, name: string): Promise<unknown[]> => {
    const related: unknown = await app.strapi.db.query(uid).load(row as never, name as never);
    return [related ?? []].flat().map((one) => (one as Entry).id);
  };
  for (const [name, relation] of relationsOf(app, uid)) {
    const isMoved = isPart(relation);
    if (relation.relation.startsWith('morph') && !isMoved) continue;
    const ids = await idsOf(other, name);
    const present = new Set(await idsOf(kept, name));
    if (isMoved && ids.length > 0 && present.size === 0) parts.push(name);
    if (isMoved) continue;
    const self = relation.target === uid ? kept.id : null;
    const missing = ids.filter((one) => !present.has(one) && one !== self);
    if (missing.length === 0 || (isToOne(relation) && present.size > 0)) continue;
    data[name] = isToOne(relation) ? missing[0] : { connect: missing.map((id) => ({ id })) };
  }
  return { data, parts };
};

/** Moves components and media of these fields, and what refers to records of any type. */
const moveParts = async ({ app, uid, kept, other }: Merge, parts: string[]): Promise<void> => {
  const db = await app.db.current();
  const move = async (table: string, column: string, where: object, isMoved = true) => {
    const rows = db.table(table).where({ ...where, [column]: other.id });
    await (isMoved ? rows.update({ [column]: kept.id }) : rows.delete());
  };
  const media: string[] = [];
  for (const [field, relation] of relationsOf(app, uid)) {
    const { joinTable } = relation;
    if (joinTable?.on) {
      if (parts.includes(field)) await move(joinTable.name, joinTable.joinColumn.name, { field });
    } else if (isPart(relation)) media.push(field);
  }
  for (const { uid: type, tableName } of app.strapi.db.metadata.values()) {
    for (const [, { morphColumn, joinTable }] of relationsOf(app, type)) {
      const morph = morphColumn ?? joinTable?.morphColumn;
      if (!morph) continue;
      const table = morphColumn ? tableName : (joinTable?.name ?? '');
      const where = { [morph.typeColumn.name]: uid };
      const fields = morphColumn ? [] : media;
      for (const field of fields) {
        await move(table, morph.idColumn.name, { ...where, field }, parts.includes(field));
      }
      await move(table, morph.idColumn.name, where);
    }
  }
};

/** The values that change of the contact which is kept. Its lifetime value follows its purchases, and its bin nobody. */
const mergedValues = ({ app, uid, kept, other }: Merge): Record<string, unknown> => {
  const named = ['email', 'status', 'lifetime_value', 'dates.trashed_at'];
  const [email = '', status = '', ...left] = named.map(
    (path) => columnOf(app, getInspected(app, 'contact'), path)?.attribute
  );
  const shapes = app.strapi.getModel(uid).attributes as unknown as Record<string, MergedShape>;
  const values = Object.entries(shapes)
    .filter(([name, shape]) => isMergedValue(name, shape) && !left.includes(name))
    .map(([name, shape]) => [name, mergedValue(shape, kept[name], other[name])] as const);
  const changed = Object.fromEntries(values.filter(([name, value]) => value !== kept[name]));
  // An address that unsubscribed stays so with its next contact.
  const isBrought = email in changed && status !== '' && other[status] !== kept[status];
  return isBrought ? { ...changed, [status]: other[status] } : changed;
};

const id = z.string().regex(DOCUMENT_ID, { message: 'is not the id of a record' });
const mergeBody = z.strictObject({
  keep: id,
  remove: id,
  seen: z.strictObject({ keep: z.iso.datetime(), remove: z.iso.datetime() }).optional(),
});
type MergeBody = z.infer<typeof mergeBody>;

/** @throws ValidationError if the values of both together are longer than a contact may have them */
const checkLength = ({ app }: Merge, values: Record<string, unknown>): void => {
  for (const { type, path, attribute } of getInspected(app, 'contact').source.fields) {
    if (type === 'bag' && JSON.stringify(values[attribute ?? ''] ?? null).length > BAG_MAX) {
      throw fieldError(path, `would be longer than ${BAG_MAX} characters`);
    }
  }
};

/** @throws ForbiddenError if the content manager lets the user not change these fields, or not delete the other one */
const checkRights = (
  { app, uid, kept, other }: Merge,
  may: ContentPermissions,
  names: string[]
) => {
  const { fields } = getInspected(app, 'contact').source;
  const derived = fields.flatMap(({ bookkeeping, attribute }) => (bookkeeping ? attribute : []));
  // Permissions name a component by its fields.
  const { getNestedFields } = app.strapi.service('admin::content-type') as unknown as {
    getNestedFields(model: object, options: object): string[];
  };
  const nested = getNestedFields(app.strapi.getModel(uid), { components: app.strapi.components });
  const fieldsOf = (name: string): string[] => {
    const within = nested.filter((one) => one.startsWith(`${name}.`));
    return within.length > 0 ? within : [name];
  };
  const cannot = (name: string): boolean => may.cannot.update(kept, name);
  const refused = names.filter((name) => !derived.includes(name) && fieldsOf(name).some(cannot));
  if (refused.length > 0 || may.cannot.update(kept) || may.cannot.delete(other)) {
    throw new errors.ForbiddenError(['You may not merge these contacts', ...refused].join(': '));
  }
};

const addPurchases = async ({ app, kept, other }: Merge): Promise<void> => {
  const to = String(kept.documentId);
  const isOneCurrency = await purchasesOf(app)?.move(String(other.documentId), to);
  const value = columnOf(app, getInspected(app, 'contact'), 'lifetime_value')?.attribute ?? '';
  const change = isOneCurrency === false ? 0n : readUnits(other[value]);
  await new Customers(app).followPurchases(to, { change, digits: 4, before: async () => 0n });
};

/**
 * Moves everything that refers to a contact to another one, completes that one, and deletes the first; in one
 * transaction. docs/contacts.md#merge-duplicates
 * @param seen when both were changed last, as the user saw them
 * @throws NotFoundError (404) if one is gone, ForbiddenError (403)
 */
const mergeContacts = async (app: App, ctx: Context, { keep, remove, seen }: MergeBody) => {
  const watched = getInspected(app, 'contact');
  const uid = watched.uid as UID.ContentType;
  const may = contentPermissions(app, ctx, uid);
  const { id: updatedBy } = requireAdminUser(ctx);
  const populate = await judgedRelations(app, ctx, uid, ['update', 'delete']);
  const email = columnOf(app, watched, 'email')?.attribute;
  const where = { documentId: { $in: [keep, remove] } };
  const known = await selectRows<Entry>(app, uid, { select: ['id', email ?? 'id'], where });
  const pinned = { id: { $in: known.map((row) => row.id) } };
  const query = app.strapi.db.query(uid);
  const emails = known.map((row) => String(row[email ?? ''] ?? ''));
  return app.db.retrying(() =>
    inUnitOfWork(app, eventsAbout(app, uid), async (write) => {
      // First of all: forms and tills that come with one of the addresses wait, and then find who is kept.
      await lockEmails(app, emails);
      // By primary key, as the host writes: MySQL locks each index by which it finds, and two orders would deadlock.
      await lockRows(app, uid, pinned);
      const rows = (await query.findMany({ where: pinned, populate })) as Entry[];
      const [kept, other] = [keep, remove].map((one) =>
        rows.find(({ documentId }) => documentId === one)
      );
      if (!kept || !other) throw new errors.NotFoundError('Contact not found');
      const merge = { app, uid, kept, other };
      const times = [kept, other].map((row) => new Date(row.updatedAt as string).toISOString());
      if (seen && !isDeepStrictEqual([seen.keep, seen.remove], times)) {
        return new Refused('One of the contacts was changed meanwhile', 'changed_meanwhile');
      }
      const { data: relations, parts } = await unitedRelations(merge);
      const values = mergedValues(merge);
      checkRights(merge, may, [...Object.keys(relations), ...parts, ...Object.keys(values)]);
      checkLength(merge, values);
      const params = { documentId: keep };
      await trackNamedDocument(write, [watched], { uid, action: 'update', params });
      await moveOneWay(merge);
      await query.update({ where: { id: kept.id }, data: relations } as never);
      await moveParts(merge, parts);
      await addPurchases(merge);
      // Before its address is given to the one that is kept.
      await app.strapi.documents(uid).delete({ documentId: remove });
      const data = { ...values, updatedBy };
      await app.strapi.documents(uid).update({ documentId: keep, data } as never);
      return { id: keep };
    })
  );
};

export const contactMerges: Endpoints = {
  'contact-merges': {
    merge: endpoint('POST /contacts/merge', { body: mergeBody }, ({ app, ctx, body }) => {
      const given = body();
      const { draftAndPublish, localized } = getInspected(app, 'contact');
      if (given.keep === given.remove) throw fieldError('remove', 'is the contact to keep');
      if (draftAndPublish || localized) {
        throw new errors.ApplicationError('Contacts with drafts or languages cannot be merged');
      }
      return mergeContacts(app, ctx, given);
    }),
  },
};
