import { randomUUID } from 'node:crypto';
import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { DocumentLine, LocationSummary } from '../../../../shared/contracts/stock';
import type { Page } from '../../../../shared/contracts/webhooks';
import { currentExecutor, type Executor, table } from '../../database/connection';
import { firstOrNotFound } from '../../database/errors/first-or-not-found';
import { type PageRequest, readPage } from '../../http/pagination';
import { fieldError } from '../../http/validation';
import { digestOf } from '../digest';
import { itemFromInput } from '../items';
import {
  type Big,
  DOCUMENTS_TABLE,
  type DocumentRow,
  type ItemRow,
  ITEMS_TABLE,
  LEVELS_TABLE,
  type LocationRow,
  LOCATIONS_TABLE,
  type MovementRow,
  MOVEMENTS_TABLE,
} from '../tables';
import { refusal } from '../../runtime/refusal';

/** Transfers and stocktakes: what is written by hand and is more than one line of the ledger. */

type Kind = DocumentRow['kind'];

/** A line of the ledger beside its item. */
export type LineRow = MovementRow & {
  item_id: Big;
  location_id: Big;
  sku: string;
  item_name: string | null;
};

export const documentDigest = (kind: Kind, externalId: string): string =>
  digestOf(`${kind}:${externalId}`);

/** The time that a client gives, or now. @throws ValidationError (400) where it lies ahead */
export const timeOf = (occurredAt: number | undefined): number => {
  const now = Date.now();
  if (occurredAt !== undefined && occurredAt > now) {
    throw fieldError('occurred_at', refusal('must not lie in the future', 'future'));
  }
  return occurredAt ?? now;
};

/** A line as a client asks for it. */
export interface AskedLine {
  item: ItemRow;
  quantity: number;
  note: string | null;
}

/** @throws ValidationError (400) that names the item there is none of */
export const askedLines = async (
  strapi: Core.Strapi,
  trx: Executor,
  asked: readonly { item: number | string; quantity: number; reason?: string }[],
  field: string
): Promise<AskedLine[]> => {
  const lines: AskedLine[] = [];
  for (const [index, { item, quantity, reason }] of asked.entries()) {
    const row = await itemFromInput(strapi, trx, item, `${field}.${index}.item`);
    lines.push({ item: row, quantity, note: reason ?? null });
  }
  return lines;
};

export const summaryOfLocation = (row: LocationRow | undefined): LocationSummary => ({
  id: Number(row?.id ?? 0),
  code: row?.code ?? '',
  name: row?.name ?? '',
});

export const itemOfLine = (line: LineRow): DocumentLine['item'] => ({
  id: Number(line.item_id),
  sku: line.sku,
  name: line.item_name,
});

type NewDocument = Pick<
  DocumentRow,
  'kind' | 'external_id' | 'at' | 'location_id' | 'to_location_id' | 'made_by'
>;

/** Inserts a document. @returns its id; fails at a unique index where its external id is taken */
export const insertDocument = async (
  strapi: Core.Strapi,
  trx: Executor,
  values: NewDocument
): Promise<number> => {
  // Found again by its digest: not every database gives the id of a new row.
  const digest =
    values.external_id === null
      ? digestOf(`${values.kind}#${randomUUID()}`)
      : documentDigest(values.kind, values.external_id);
  const rows = () => table(strapi, trx, DOCUMENTS_TABLE);
  await rows().insert({ ...values, external_digest: digest, created_at: Date.now() });
  const row = (await rows().where({ external_digest: digest }).first()) as DocumentRow;
  return Number(row.id);
};

/** What a document is shown as, from its row, its lines and all locations. */
export type DocumentShape<T> = (
  row: DocumentRow,
  lines: readonly LineRow[],
  locations: ReadonlyMap<number, LocationRow>
) => T;

const linesOf = async (
  strapi: Core.Strapi,
  executor: Executor,
  ids: readonly number[]
): Promise<LineRow[]> => {
  const schema = strapi.db.getSchemaName();
  const named = (name: string): string => (schema ? `${schema}.${name}` : name);
  return (await (executor as Knex)(`${named(MOVEMENTS_TABLE)} as m`)
    .join(`${named(LEVELS_TABLE)} as l`, 'l.id', 'm.level_id')
    .join(`${named(ITEMS_TABLE)} as i`, 'i.id', 'l.item_id')
    .select('m.*', 'l.item_id', 'l.location_id', 'i.sku', 'i.name as item_name')
    .whereIn('m.document_id', [...ids])
    .orderBy('m.id')) as LineRow[];
};

const shaped = async <T>(
  strapi: Core.Strapi,
  executor: Executor,
  rows: readonly DocumentRow[],
  shape: DocumentShape<T>
): Promise<T[]> => {
  const ids = rows.map(({ id }) => Number(id));
  const lines = await linesOf(strapi, executor, ids);
  const places = (await table(strapi, executor, LOCATIONS_TABLE).select('*')) as LocationRow[];
  const locations = new Map(places.map((row) => [Number(row.id), row]));
  return rows.map((row) =>
    shape(
      row,
      lines.filter(({ document_id: id }) => Number(id) === Number(row.id)),
      locations
    )
  );
};

/** A page of documents, newest first. */
export const listDocuments = async <T>(
  strapi: Core.Strapi,
  kind: Kind,
  request: PageRequest,
  shape: DocumentShape<T>
): Promise<Page<T>> => {
  const executor = await currentExecutor(strapi);
  const query = table(strapi, executor, DOCUMENTS_TABLE)
    .select('*')
    .where({ kind })
    .orderBy('id', 'desc');
  const { rows, meta } = await readPage<DocumentRow>(executor, query, request);
  return { data: await shaped(strapi, executor, rows, shape), meta };
};

/** @throws NotFoundError (404) */
export const getDocument = async <T>(
  strapi: Core.Strapi,
  executor: Executor,
  kind: Kind,
  id: number,
  shape: DocumentShape<T>
): Promise<T> => {
  const what = kind === 'transfer' ? 'Transfer' : 'Stocktake';
  const query = table(strapi, executor, DOCUMENTS_TABLE).where({ kind, id });
  const row = await firstOrNotFound<DocumentRow>(query, what);
  const [document] = await shaped(strapi, executor, [row], shape);
  return document as T;
};
