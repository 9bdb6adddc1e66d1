import {
  documentIdsOf,
  giveDocumentId,
  inChunks,
  type Where,
} from '../../database/matching-documents';
import { existingOf, idNamed, lockWritten, type WriteEvent } from '../../database/written-rows';
import { FILE } from '../rules';
import type { EntryType } from '../types';
import { readVersions, seesDrafts } from './versions';
import type { EntryWrite } from '../write';

type Data = Record<string, unknown>;

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
  const unknown = given.filter((id) => !write.documentsOf(type).has(id));
  const existing = unknown.length > 0 ? await existingOf(write.strapi, type.uid, unknown) : [];
  for (const id of unknown) {
    if (!existing.includes(id)) write.documentsOf(type).set(id, { before: [], rewritten: false });
  }
  if (existing.length > 0) await trackDocuments(write, type, existing);
};

/** The documents that a write changes, by its own condition, of which receivers hear. */
async function* matching(
  { strapi }: EntryWrite,
  type: EntryType,
  event: WriteEvent
): AsyncGenerator<string[]> {
  const data = event.params.data as Data | undefined;
  // Rows that are given a time of publishing come to be heard of.
  const isHeard = seesDrafts(type) || data?.publishedAt !== undefined;
  const locked = await lockWritten(strapi, event);
  if (!locked) {
    const where = event.params.where as Where;
    const published: Where = { publishedAt: { $notNull: true } };
    yield* documentIdsOf(strapi, type.uid, {
      where: isHeard ? where : { $and: [where, published] },
    });
    return;
  }
  const heard = locked.filter((row) => isHeard || !isDraftRow({ ...row }));
  yield* inChunks([...new Set(heard.map(({ documentId }) => documentId))]);
}

/** A file is replaced under its own address: its record may look the same afterwards. */
const isReplaced = ({ uid }: EntryType, data: Data | undefined): boolean =>
  uid === FILE && data?.hash !== undefined;

/** Notes the documents that a write's own condition matches. */
export const trackMatching = async (
  write: EntryWrite,
  type: EntryType,
  event: WriteEvent
): Promise<void> => {
  const replaced = isReplaced(type, event.params.data as Data | undefined);
  const row = idNamed(event.params.where);
  if (row !== null && write.rows.has(rowKey(type, row)) && !replaced) return;
  for await (const ids of matching(write, type, event)) {
    await trackDocuments(write, type, ids);
    if (!replaced) continue;
    const documents = write.documentsOf(type);
    for (const id of ids) {
      const tracked = documents.get(id);
      if (tracked) tracked.rewritten = true;
    }
  }
};
