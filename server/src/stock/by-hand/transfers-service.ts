import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { Transfer } from '../../../../shared/contracts/stock';
import type { Page } from '../../../../shared/contracts/webhooks';
import { currentExecutor, type Executor, table } from '../../database/connection';
import { inUniqueTransaction } from '../../database/errors/duplicate';
import type { PageRequest } from '../../http/pagination';
import { fieldError } from '../../http/validation';
import { isoTime } from '../../runtime/iso-time';
import { getPublisher } from '../../webhooks/publish';
import type { TransferInput } from '../inputs';
import { createLedger } from '../ledger';
import { locationFromInput } from '../locations';
import { stockChangeEvents } from '../events';
import { DOCUMENTS_TABLE, type DocumentRow, type LocationRow } from '../tables';
import {
  askedLines,
  type AskedLine,
  documentDigest,
  type DocumentShape,
  getDocument,
  insertDocument,
  itemOfLine,
  type LineRow,
  listDocuments,
  summaryOfLocation,
  timeOf,
} from './documents';
import { refusal } from '../../runtime/refusal';

/** Stock that goes from one location to another; docs/tills.md#moving-stock. */
export interface StockTransfersService {
  /**
   * Takes from one location and gives to the other, both in one transaction, once for each
   * `external_id`: the same again is answered with what is there, as `duplicate`.
   * @throws ValidationError (400) that names the field
   */
  transfer(input: TransferInput, madeBy: string | null): Promise<Transfer>;
  /** Newest first. */
  list(page: PageRequest): Promise<Page<Transfer>>;
  /** @throws NotFoundError (404) */
  get(id: number): Promise<Transfer>;
}

const movementOf = (line: LineRow): Transfer['lines'][number]['movements'][number] => ({
  id: Number(line.id),
  level_id: Number(line.level_id),
  quantity: Number(line.quantity),
  effect: Number(line.effect),
  reason: line.reason,
});

const toTransfer: DocumentShape<Transfer> = (row, lines, locations) => {
  const out = lines.filter(({ quantity }) => Number(quantity) < 0);
  const arrived = lines.filter(({ quantity }) => Number(quantity) > 0);
  return {
    id: Number(row.id),
    external_id: row.external_id,
    from: summaryOfLocation(locations.get(Number(row.location_id))),
    to: summaryOfLocation(locations.get(Number(row.to_location_id))),
    occurred_at: isoTime(Number(row.at)),
    made_by: row.made_by,
    created_at: isoTime(Number(row.created_at)),
    lines: out.map((line, index) => {
      const other = arrived[index];
      return {
        item: itemOfLine(line),
        quantity: -Number(line.quantity),
        movements: [line, ...(other ? [other] : [])].map(movementOf),
      };
    }),
  };
};

interface Move {
  document: number;
  from: LocationRow;
  to: LocationRow;
  at: number;
  lines: readonly AskedLine[];
  madeBy: string | null;
}

const write = async (
  strapi: Core.Strapi,
  trx: Knex.Transaction,
  { document, from, to, at, lines, madeBy }: Move
): Promise<void> => {
  const ledger = createLedger(strapi, trx);
  const moves = lines.flatMap(({ item, quantity, note }) =>
    [
      { location: Number(from.id), quantity: -quantity },
      { location: Number(to.id), quantity },
    ].map((side) => ({ ...side, item: Number(item.id), note }))
  );
  await ledger.lock(moves);
  const base = { type: 'transfer', at, reason: null, eventId: null } as const;
  for (const move of moves) ledger.move({ ...base, ...move, documentId: document, madeBy });
  const changes = await ledger.flush();
  await getPublisher(strapi).publish(await stockChangeEvents(strapi, trx, changes));
};

const knownTransfer = async (
  strapi: Core.Strapi,
  trx: Executor,
  externalId: string | null
): Promise<DocumentRow | undefined> => {
  if (externalId === null) return undefined;
  return (await table(strapi, trx, DOCUMENTS_TABLE)
    .where({ external_digest: documentDigest('transfer', externalId) })
    .first()) as DocumentRow | undefined;
};

export const createStockTransfersService = ({
  strapi,
}: {
  strapi: Core.Strapi;
}): StockTransfersService => ({
  transfer: (input, madeBy) =>
    inUniqueTransaction(strapi, async ({ trx }) => {
      const externalId = input.external_id ?? null;
      const read = (id: number) => getDocument(strapi, trx, 'transfer', id, toTransfer);
      const known = await knownTransfer(strapi, trx, externalId);
      if (known) return { ...(await read(Number(known.id))), duplicate: true };
      const at = timeOf(input.occurred_at);
      const from = await locationFromInput(strapi, trx, input.from, 'from');
      const to = await locationFromInput(strapi, trx, input.to, 'to');
      if (Number(from.id) === Number(to.id)) {
        throw fieldError('to', refusal('must be another location than from', 'same_location'));
      }
      const lines = await askedLines(strapi, trx, input.lines, 'lines');
      const document = await insertDocument(strapi, trx, {
        kind: 'transfer',
        external_id: externalId,
        at,
        location_id: Number(from.id),
        to_location_id: Number(to.id),
        made_by: madeBy,
      });
      await write(strapi, trx, { document, from, to, at, lines, madeBy });
      return { ...(await read(document)), duplicate: false };
    }),

  list: (page) => listDocuments(strapi, 'transfer', page, toTransfer),

  get: async (id) => getDocument(strapi, await currentExecutor(strapi), 'transfer', id, toTransfer),
});
