import {
  documentIdsOf,
  giveDocumentId,
  inChunks,
  type Where,
} from '../../database/matching-documents';
import { FILE } from '../rules/events';
import type { EntryType } from '../types/entry-types';
import { readVersions, seesDrafts } from './versions';
import type { EntryWrite } from './write';

type Data = Record<string, unknown>;

export interface WriteParams {
  where?: Where;
  filters?: unknown;
  _q?: unknown;
  data?: Data;
}

const rowKey = ({ uid }: EntryType, id: unknown): string => `${uid}:${String(id)}`;

/** Notes documents as they are now, before the write; those that are noted already stay as they were. */
export const trackDocuments = async (
  write: EntryWrite,
  type: EntryType,
  documentIds: readonly string[]
): Promise<void> => {
  const documents = write.documentsOf(type);
  const unread = documentIds.filter((id) => !documents.has(id));
  for (const ids of inChunks(unread)) {
    const versions = await readVersions(write.strapi, type, ids, { lock: true });
    for (const id of ids) {
      const before = versions.get(id) ?? [];
      documents.set(id, { before, rewritten: false });
      for (const { row } of before) write.rows.add(rowKey(type, row));
    }
  }
};

const isDraftRow = ({ publishedAt }: Data): boolean => (publishedAt ?? null) === null;

/** Notes what is about to be created; a row may also be a further one of a document that exists. */
export const trackCreated = async (
  write: EntryWrite,
  type: EntryType,
  rows: readonly Data[]
): Promise<void> => {
  const given: string[] = [];
  for (const data of rows) {
    if (!seesDrafts(type) && isDraftRow(data)) continue;
    if (typeof data.documentId === 'string') {
      given.push(data.documentId);
    } else {
      const id = giveDocumentId(write.strapi, type.uid, data);
      write.documentsOf(type).set(id, { before: [], rewritten: false });
    }
  }
  if (given.length > 0) await trackDocuments(write, type, given);
};

/** The id of the only row that a condition names; null where it names others, or in another way. */
const rowNamed = ({ where, filters, _q }: WriteParams): unknown => {
  if (!where || filters || _q || Object.keys(where).length !== 1) return null;
  return ['number', 'string'].includes(typeof where.id) ? where.id : null;
};

/** Which rows a write may change that receivers hear of. */
const conditionOf = (type: EntryType, { where, filters, _q, data }: WriteParams): WriteParams => {
  // Rows that are given a time of publishing come to be heard of.
  if (seesDrafts(type) || data?.publishedAt !== undefined) return { where, filters, _q };
  const published: Where = { publishedAt: { $notNull: true } };
  return { where: where ? { $and: [where, published] } : published, filters, _q };
};

/** A file is replaced under its own address: its record may look the same afterwards. */
const isReplaced = ({ uid }: EntryType, data: Data | undefined): boolean =>
  uid === FILE && data?.hash !== undefined;

/** Notes the documents that a write's own condition matches. */
export const trackMatching = async (
  write: EntryWrite,
  type: EntryType,
  params: WriteParams
): Promise<void> => {
  const replaced = isReplaced(type, params.data);
  const row = rowNamed(params);
  if (row !== null && write.rows.has(rowKey(type, row)) && !replaced) return;
  for await (const ids of documentIdsOf(write.strapi, type.uid, conditionOf(type, params))) {
    await trackDocuments(write, type, ids);
    if (!replaced) continue;
    const documents = write.documentsOf(type);
    for (const id of ids) {
      const tracked = documents.get(id);
      if (tracked) tracked.rewritten = true;
    }
  }
};
