import { createDetached } from '../../database/connection';
import { createFaultLog } from '../../database/retry';
import {
  inChunks,
  listenToWrites,
  type WriteEvent,
  writtenRows,
} from '../../database/written-rows';
import { SITE_TABLE } from '../../database/site';
import type { PlainTable } from '../../database/tables/plain-tables';
import { BackgroundWork, whenLoaded } from '../../runtime/background-work';
import { columnOf, getInspected, type ValueColumn } from '../mapping/sources';
import type { App, Slot } from '../../app';
import type { Db } from '../../database/db';

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

/** Where this site keeps the phones of contacts; null: nowhere. */
export const phoneColumn = (app: App): ValueColumn | null =>
  columnOf(app, getInspected(app, 'contact'), 'phone');

/** Numbers of one person end alike, however they begin. */
const LAST_DIGITS = 6;

/** What a phone is found by; null where it has too few digits to be one. */
export const lastDigits = (phone: unknown): string | null => {
  const digits = ['string', 'number'].includes(typeof phone)
    ? String(phone).replace(/\D/g, '')
    : '';
  return digits.length < LAST_DIGITS ? null : digits.slice(-LAST_DIGITS);
};

interface ContactPhone {
  document_id: string;
  phone: unknown;
}

const CHUNK = 200;

/** Of one contact, as every write of one has it: built by hand, and prepared once where that is had. */
const insertOne = async (
  db: Db,
  { digits, document_id }: { digits: string; document_id: string }
): Promise<void> => {
  const { client, schema } = db;
  const name =
    client === 'mysql' ? PHONES_TABLE : `${schema ? `"${schema}".` : ''}"${PHONES_TABLE}"`;
  const sql =
    client === 'mysql'
      ? `INSERT IGNORE INTO ${name} (digits, document_id) VALUES (?, ?)`
      : `INSERT INTO ${name} (digits, document_id) VALUES (?, ?) ON CONFLICT (digits, document_id) DO NOTHING`;
  await db.prepared({ sql, bindings: [digits, document_id] });
};

/** Adds what is new. It asks the database nothing where none of these is a phone. */
const indexPhones = async (db: Db, contacts: readonly ContactPhone[]): Promise<void> => {
  const rows = contacts.flatMap(({ document_id, phone }) => {
    const digits = lastDigits(phone);
    return digits === null ? [] : [{ digits, document_id }];
  });
  const [only] = rows;
  if (only && rows.length === 1) return insertOne(db, only);
  for (let start = 0; start < rows.length; start += CHUNK) {
    await db
      .table(PHONES_TABLE)
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
export const keepPhoneIndex = (app: App): void => {
  const source = phoneColumn(app);
  if (!source) return;
  const { attribute, tableName } = source;
  const { uid } = getInspected(app, 'contact');
  const index = async (contacts: readonly ContactPhone[]): Promise<void> =>
    indexPhones(await app.db.current(), contacts);
  const written = async ({ params, result }: ContactEvent): Promise<void> => {
    const phone = (params.data as Data | undefined)?.[attribute];
    if (!phone) return;
    const id = (result as { documentId?: unknown } | null | undefined)?.documentId;
    if (typeof id === 'string') await index([{ document_id: id, phone }]);
  };
  const withPhone = ({ params }: ContactEvent): Data[] =>
    (Array.isArray(params.data) ? params.data : []).filter(
      (data) => lastDigits(data[attribute]) !== null
    );
  const { documentId } = app.strapi.db.metadata.get(uid).attributes as {
    documentId?: { default?: () => string };
  };
  listenToWrites(app.strapi, [uid], {
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
      for (const rows of inChunks(await writtenRows(app.strapi, event))) {
        await index(rows.map(({ documentId: document_id }) => ({ document_id, phone })));
      }
    },
    async afterDelete({ result }: ContactEvent) {
      const row = result as ({ documentId?: unknown } & Data) | null;
      if (typeof row?.documentId !== 'string' || lastDigits(row[attribute]) === null) return;
      const db = await app.db.current();
      const where = { document_id: row.documentId };
      // Its draft, or another language of it, may still be there.
      await db
        .table(PHONES_TABLE)
        .where(where)
        .whereNotExists(db.table(tableName).select('id').where(where))
        .delete();
    },
  });
};

/**
 * Contacts that came without a lifecycle: those of earlier versions, an import of the host's, a
 * statement of somebody's own. Their table is walked by its ids, and how far that is stands in the
 * database; so it may be interrupted anywhere, and any node goes on. What lies behind the mark is
 * looked through itself meanwhile (`find-by-phone`).
 */

const MARK = { name: 'contact_phones' };
const AT_ONCE = 500;
const LOOK_AGAIN = '23 * * * * *';
const FORGET = '41 3 * * *';

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));

const marks = (db: Db) => db.table(SITE_TABLE).where(MARK);

/** The phones that are walked: another type, or another field of it, is walked from its beginning. */
const walked = (app: App, { attribute }: ValueColumn): string =>
  `${getInspected(app, 'contact').uid}/${attribute}/`;

const upTo = (app: App, source: ValueColumn, mark: { value: string } | undefined): number => {
  const start = walked(app, source);
  return mark?.value.startsWith(start) ? Number(mark.value.slice(start.length)) : 0;
};

/** Contacts' rows up to this id are in the index, those of later ones that were written since too. */
export const indexedUpTo = async (app: App, source: ValueColumn): Promise<number> =>
  upTo(app, source, (await marks(await app.db.current()).first()) as { value: string } | undefined);

type Row = ContactPhone & { id: number };

/** @returns whether there is more to do */
const fillSome = (app: App, source: ValueColumn): Promise<boolean> =>
  app.db.retrying(async (tx) => {
    const known = (await marks(tx).forUpdate().first()) as { value: string } | undefined;
    const after = upTo(app, source, known);
    const rows = (await tx
      .table(source.tableName)
      .select('id', 'document_id', `${source.column} as phone`)
      .where('id', '>', after)
      .orderBy('id')
      .limit(AT_ONCE)) as Row[];
    const last = rows.at(-1);
    const isFull = rows.length === AT_ONCE;
    // A few without a phone are not worth a write a minute.
    if (!last || (!isFull && rows.every(({ phone }) => lastDigits(phone) === null))) return false;
    await indexPhones(tx, rows);
    await marks(tx).update({ value: `${walked(app, source)}${last.id}` });
    return isFull;
  });

/** Forgets digits that are of no contact's phone any more. */
const forgetGone = async (
  app: App,
  source: ValueColumn,
  isStopped: () => boolean
): Promise<void> => {
  const db = await app.db.current();
  for (let last = 0; !isStopped();) {
    const rows = (await db
      .table(PHONES_TABLE)
      .select('id', 'digits', 'document_id')
      .where('id', '>', last)
      .orderBy('id')
      .limit(AT_ONCE)) as { id: number; digits: string; document_id: string }[];
    const ids = [...new Set(rows.map(({ document_id: id }) => id))];
    const contacts = (await db
      .table(source.tableName)
      .select('document_id', `${source.column} as phone`)
      .whereIn('document_id', ids)) as ContactPhone[];
    const kept = new Set(
      contacts.map(({ document_id: id, phone }) => `${lastDigits(phone) ?? ''}/${id}`)
    );
    const gone = rows.filter(({ digits, document_id: id }) => !kept.has(`${digits}/${id}`));
    if (gone.length > 0) {
      await db
        .table(PHONES_TABLE)
        .whereIn(
          'id',
          gone.map(({ id }) => id)
        )
        .delete();
    }
    if (rows.length < AT_ONCE) return;
    last = Number(rows.at(-1)?.id);
    await pause();
  }
};

const stops = (): Slot<() => Promise<void>> => ({});

/** Makes the mark, fills what is there in the background, and looks each minute for what came. */
export const startFillingPhones = async (app: App): Promise<void> => {
  const source = phoneColumn(app);
  if (!source) return;
  const db = await app.db.current();
  await db
    .table(SITE_TABLE)
    .insert({ ...MARK, value: `${walked(app, source)}0` })
    .onConflict('name')
    .ignore();
  const logFault = createFaultLog(app.log);
  const detached = createDetached();
  let forget = false;
  const work = new BackgroundWork({
    detached,
    async pass(isStopped) {
      while (!isStopped() && (await fillSome(app, source))) await pause();
      if (!forget) return;
      forget = false;
      await forgetGone(app, source, isStopped);
    },
    failed: (error) => logFault('switchboard: phones of contacts were not indexed', error),
  });
  app.strapi.cron.add({
    switchboardContactPhones: {
      task: async () => work.wake(),
      options: { rule: LOOK_AGAIN },
    },
    switchboardForgottenPhones: {
      task: async () => {
        forget = true;
        work.wake();
      },
      options: { rule: FORGET },
    },
  });
  const giveUpStart = whenLoaded(app.strapi, () => work.wake());
  app.part(stops).value = () => {
    giveUpStart();
    return work.stop();
  };
};

/** Lets the step under way commit. */
export const stopFillingPhones = async (app: App): Promise<void> => app.part(stops).value?.();
