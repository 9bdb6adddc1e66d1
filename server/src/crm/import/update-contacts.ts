import type { Core, UID } from '@strapi/strapi';
import { toData } from '../resources/to-data';
import { getInspected } from '../mapping/registry';
import { inUnitOfWork } from '../capture/capture';
import { emailKey } from '../contact-integrity/email-key';
import type { ImportRow } from './columns';
import type { ImportTags } from './tags';
import { changeOf, isInBin, type KnownContact, readKnown, type RowChange } from './known-contacts';
import { linkTags } from './link-tags';

const CONTACT = 'plugin::switchboard.contact' as UID.ContentType;

export interface UpdateResult {
  updated: number;
  unchanged: number;
  /** Rows whose contact is gone, or that would change more than its own row and its tags. */
  left: ImportRow[];
}

/** Changes that need the relation's own table: the host's document service writes those. */
export const isPlain = (changes: Readonly<Record<string, unknown>>): boolean =>
  !('company_id' in changes) && !('owner_id' in changes);

/**
 * Nobody else changes these contacts until the transaction ends. In the order of their keys, as two
 * imports of the same list may do it at once; and as its first statement, since MySQL goes on
 * reading what was there when the transaction first read.
 */
const lockContacts = async (
  strapi: Core.Strapi,
  known: ReadonlyMap<string, KnownContact>
): Promise<void> => {
  const ids = [...known.values()].map(({ rowId }) => rowId);
  await strapi.db
    .queryBuilder(CONTACT)
    .init({ select: ['id'], where: { id: { $in: ids } }, orderBy: { id: 'asc' } })
    .forUpdate()
    .execute();
};

interface Update {
  known: KnownContact;
  change: RowChange;
}

/** One statement for all contacts that change in the same way, such as to the same stage. */
const writeChanges = async (strapi: Core.Strapi, updates: readonly Update[]): Promise<void> => {
  const { source, tagSource } = getInspected(strapi, 'contact');
  const groups = new Map<string, { ids: number[]; changes: RowChange['changes'] }>();
  for (const { known, change } of updates) {
    const key = JSON.stringify(change.changes);
    const group = groups.get(key) ?? { ids: [], changes: change.changes };
    group.ids.push(known.rowId);
    groups.set(key, group);
  }
  for (const { ids, changes } of groups.values()) {
    const data = await toData(strapi, source, tagSource.uid, changes);
    const where = { id: ids.length === 1 ? ids[0] : { $in: ids } };
    // The host dates an update of many only where it is given a list.
    const dated = { ...data, updatedAt: new Date() };
    await strapi.db.query(CONTACT).updateMany({ where, data: dated as never });
  }
};

/**
 * Changes contacts that were found to be known, as one change in one transaction: what they are by
 * then decides, not what they were when they were found.
 * @param rows of different addresses
 */
export const updateContacts = (
  strapi: Core.Strapi,
  tags: ImportTags,
  rows: readonly ImportRow[],
  found: ReadonlyMap<string, KnownContact>
): Promise<UpdateResult> =>
  inUnitOfWork(strapi, getInspected(strapi, 'contact').events, async (context) => {
    await lockContacts(strapi, found);
    const current = await readKnown(strapi, rows);
    const updates: Update[] = [];
    const left: ImportRow[] = [];
    for (const row of rows) {
      const key = emailKey(row.email) ?? '';
      const known = current.get(key);
      const change = known && (await changeOf(tags, row, known));
      const isLocked = known && known.rowId === found.get(key)?.rowId;
      const isLeft = known !== undefined && isInBin(known.contact);
      if (!isLocked || isLeft || (change && !isPlain(change.changes))) left.push(row);
      else if (change) updates.push({ known, change });
    }
    await writeChanges(strapi, updates);
    const links = updates
      .filter(({ change }) => change.tagIds.length > 0)
      .map(({ known, change }) => ({
        rowId: known.rowId,
        documentId: known.contact.id,
        tagIds: change.tagIds,
        after: known.tagIds.size,
      }));
    await linkTags(context, tags, links);
    const unchanged = rows.length - left.length - updates.length;
    return { updated: updates.length, unchanged, left };
  });
