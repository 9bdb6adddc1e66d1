import type { Core } from '@strapi/strapi';
import { currentExecutor, type Executor, table } from '../../database/connection';
import { runPrepared } from '../../database/statements';
import type { PlainTable } from '../../database/tables/plain-tables';
import { getInspected } from '../mapping/registry';
import { copyParamsOf } from '../../database/host-writes';
import { type WriteEvent, writtenRows } from '../../database/written-rows';
import { inChunks } from '../../database/matching-documents';

export const PHONES_TABLE = 'switchboard_contact_phones';

/**
 * Which contacts to look at for a phone: the last digits of what their rows have or had. What the
 * contact's own phone says is what counts; a row too many costs a look and nothing else.
 */
export const phonesTable: PlainTable = {
  tableName: PHONES_TABLE,
  attributes: {
    id: { type: 'increments' },
    digits: { type: 'string', column: { args: [6] } },
    document_id: { type: 'string' },
  },
  indexes: [
    { name: 'sb_phone_digits', columns: ['digits', 'document_id'], type: 'unique' },
    { name: 'sb_phone_contact', columns: ['document_id'] },
  ],
};

/** Where this site keeps the phones of contacts. */
export interface PhoneSource {
  uid: string;
  attribute: string;
  tableName: string;
  column: string;
}

/** null: contacts have no phone here. */
export const phoneSourceOf = (strapi: Core.Strapi): PhoneSource | null => {
  const { uid, source } = getInspected(strapi, 'contact');
  const attribute = source.fields.find(({ path }) => path === 'phone')?.attribute;
  if (!attribute) return null;
  const { tableName, attributes } = strapi.db.metadata.get(uid);
  const column = (attributes[attribute] as { columnName?: string }).columnName ?? attribute;
  return { uid, attribute, tableName, column };
};

/** Numbers of one person end alike, however they begin. */
const LAST_DIGITS = 6;

/** What a phone is found by; null where it has too few digits to be one. */
export const lastDigits = (phone: unknown): string | null => {
  const digits = ['string', 'number'].includes(typeof phone)
    ? String(phone).replace(/\D/g, '')
    : '';
  return digits.length < LAST_DIGITS ? null : digits.slice(-LAST_DIGITS);
};

export interface ContactPhone {
  document_id: string;
  phone: unknown;
}

const CHUNK = 200;

/** Of one contact, as every write of one has it: built by hand, and prepared once where that is had. */
const insertOne = async (
  strapi: Core.Strapi,
  executor: Executor,
  { digits, document_id }: { digits: string; document_id: string }
): Promise<void> => {
  const { client } = strapi.db.dialect;
  const schema = strapi.db.getSchemaName();
  const name =
    client === 'mysql' ? PHONES_TABLE : `${schema ? `"${schema}".` : ''}"${PHONES_TABLE}"`;
  const sql =
    client === 'mysql'
      ? `INSERT IGNORE INTO ${name} (digits, document_id) VALUES (?, ?)`
      : `INSERT INTO ${name} (digits, document_id) VALUES (?, ?) ON CONFLICT (digits, document_id) DO NOTHING`;
  await runPrepared(executor, { sql, bindings: [digits, document_id] });
};

/** Adds what is new. It asks the database nothing where none of these is a phone. */
export const indexPhones = async (
  strapi: Core.Strapi,
  executor: Executor,
  contacts: readonly ContactPhone[]
): Promise<void> => {
  const rows = contacts.flatMap(({ document_id, phone }) => {
    const digits = lastDigits(phone);
    return digits === null ? [] : [{ digits, document_id }];
  });
  const [only] = rows;
  if (only && rows.length === 1) return insertOne(strapi, executor, only);
  for (let start = 0; start < rows.length; start += CHUNK) {
    await table(strapi, executor, PHONES_TABLE)
      .insert(rows.slice(start, start + CHUNK))
      .onConflict(['digits', 'document_id'])
      .ignore();
  }
};

type Data = Record<string, unknown>;

interface ContactEvent extends WriteEvent {
  params: WriteEvent['params'] & { data?: Data | Data[] };
  result?: unknown;
}

/**
 * Keeps the index with every write of a contact, in its transaction; one that gives no phone costs
 * nothing. What is behind it (a phone that was taken away, contacts that were deleted many at once) is
 * forgotten by the clock, see `fill-phone-index`. To be called after the change capture has begun,
 * which gives new contacts their ids where somebody subscribed.
 */
export const keepPhoneIndex = (strapi: Core.Strapi): void => {
  const source = phoneSourceOf(strapi);
  if (!source) return;
  const { uid, attribute, tableName } = source;
  copyParamsOf(strapi, [uid]);
  const index = async (contacts: readonly ContactPhone[]): Promise<void> =>
    indexPhones(strapi, await currentExecutor(strapi), contacts);
  const written = async ({ params, result }: ContactEvent): Promise<void> => {
    const phone = (params.data as Data | undefined)?.[attribute];
    const id = (result as { documentId?: unknown } | null | undefined)?.documentId;
    if (typeof id === 'string') await index([{ document_id: id, phone }]);
  };
  const withPhone = ({ params }: ContactEvent): Data[] =>
    (Array.isArray(params.data) ? params.data : []).filter(
      (data) => lastDigits(data[attribute]) !== null
    );
  const { documentId } = strapi.db.metadata.get(uid).attributes as {
    documentId?: { default?: () => string };
  };
  const subscriber = {
    models: [uid],
    afterCreate: written,
    afterUpdate: written,
    beforeCreateMany(event: ContactEvent) {
      for (const data of withPhone(event)) data.documentId ??= documentId?.default?.();
    },
    afterCreateMany: (event: ContactEvent) =>
      index(
        withPhone(event).flatMap((data) =>
          typeof data.documentId === 'string'
            ? [{ document_id: data.documentId, phone: data[attribute] }]
            : []
        )
      ),
    async beforeUpdateMany(event: ContactEvent) {
      const phone = (event.params.data as Data | undefined)?.[attribute];
      if (lastDigits(phone) === null) return;
      for (const rows of inChunks(await writtenRows(strapi, event))) {
        await index(rows.map(({ documentId: document_id }) => ({ document_id, phone })));
      }
    },
    async afterDelete({ result }: ContactEvent) {
      const row = result as ({ documentId?: unknown } & Data) | null;
      if (typeof row?.documentId !== 'string' || lastDigits(row[attribute]) === null) return;
      const executor = await currentExecutor(strapi);
      const where = { document_id: row.documentId };
      // Its draft, or another language of it, may still be there.
      await table(strapi, executor, PHONES_TABLE)
        .where(where)
        .whereNotExists(table(strapi, executor, tableName).select('id').where(where))
        .delete();
    },
  };
  strapi.db.lifecycles.subscribe(
    subscriber as unknown as Parameters<typeof strapi.db.lifecycles.subscribe>[0]
  );
};
