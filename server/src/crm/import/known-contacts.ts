import type { Core } from '@strapi/strapi';
import { differences } from '../resources/upsert-contact';
import { getInspected } from '../mapping/registry';
import { readRows } from '../mapping/records';
import { serialize, tagsOf } from '../change-capture/mapping/serialize';
import type { Payload } from '../rules/payload';
import { emailKey } from '../contact-integrity/email-key';
import type { ImportRow } from './columns';
import type { ImportTags } from './tags';

/** A contact that an address of the file belongs to. */
export interface KnownContact {
  rowId: number;
  contact: Payload;
  tagIds: ReadonlySet<string>;
}

/** What a row would make of a contact. */
export interface RowChange {
  /** As REST takes a contact. */
  changes: Record<string, unknown>;
  /** Tags that it does not have yet. */
  tagIds: string[];
}

/** Who withdrew stays withdrawn: a list that is older than that must not subscribe them again. */
const WITHDRAWN = new Set<unknown>(['unsubscribed', 'bounced', 'complained']);

/** What a row says of a contact that exists. */
export const inputForKnown = (row: ImportRow, contact: Payload): Record<string, unknown> => {
  const { status, ...input } = row.input;
  return status && !WITHDRAWN.has(contact.status) ? { ...input, status } : input;
};

/** Whether lists hide a contact. */
export const isInBin = ({ dates }: Payload): boolean =>
  Boolean((dates as { trashed_at?: unknown } | undefined)?.trashed_at);

/** The plugin's own contacts of these rows, by the key of their address, in one reading. */
export const readKnown = async (
  strapi: Core.Strapi,
  rows: readonly ImportRow[]
): Promise<Map<string, KnownContact>> => {
  const watched = getInspected(strapi, 'contact');
  const { source, tagSource } = watched;
  const where = { email_key: { $in: rows.map(({ email }) => emailKey(email)) } };
  const found = await readRows(strapi, watched, where, {
    // Relations that no row of the file names are not loaded.
    keys: new Set(rows.flatMap(({ input }) => Object.keys(input))),
    tags: rows.some(({ tags }) => tags.length > 0),
  });
  return new Map(
    found.map((row) => [
      String(row.email_key),
      {
        rowId: Number(row.id),
        contact: serialize(source, row),
        tagIds: new Set(tagsOf(source, tagSource, row).map(({ id }) => id)),
      },
    ])
  );
};

/** @returns null where the row says nothing new of the contact. */
export const changeOf = async (
  tags: ImportTags,
  row: ImportRow,
  known: KnownContact
): Promise<RowChange | null> => {
  const changes = differences(known.contact, inputForKnown(row, known.contact));
  const tagIds = (await tags.idsOf(row.tags)).filter((id) => !known.tagIds.has(id));
  return Object.keys(changes).length > 0 || tagIds.length > 0 ? { changes, tagIds } : null;
};
