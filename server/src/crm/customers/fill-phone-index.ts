import type { Core } from '@strapi/strapi';
import { createDetached, currentExecutor, type Executor, table } from '../../database/connection';
import { createFaultLog } from '../../database/errors/fault-log';
import { inRetriedTransaction } from '../../database/retry';
import { SITE_TABLE } from '../../database/site-instance';
import { createBackgroundWork } from '../../runtime/background-work';
import { whenLoaded } from '../../runtime/when-loaded';
import {
  type ContactPhone,
  indexPhones,
  lastDigits,
  PHONES_TABLE,
  type PhoneSource,
  phoneSourceOf,
} from './phone-index';

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

const marks = (strapi: Core.Strapi, executor: Executor) =>
  table(strapi, executor, SITE_TABLE).where(MARK);

const written = ({ uid, attribute }: PhoneSource, id: number): string =>
  `${uid}/${attribute}/${id}`;

/** Another type, or another field of it, is walked from its beginning. */
const parsed = (source: PhoneSource, row: { value: string } | undefined): number => {
  const [id = '0', ...rest] = (row?.value ?? '').split('/').reverse();
  return rest.reverse().join('/') === `${source.uid}/${source.attribute}` ? Number(id) : 0;
};

/** Contacts' rows up to this id are in the index, those of later ones that were written since too. */
export const indexedUpTo = async (strapi: Core.Strapi, source: PhoneSource): Promise<number> =>
  parsed(
    source,
    (await marks(strapi, await currentExecutor(strapi)).first()) as { value: string } | undefined
  );

type Row = ContactPhone & { id: number };

/** @returns whether there is more to do */
const fillSome = (strapi: Core.Strapi, source: PhoneSource): Promise<boolean> =>
  inRetriedTransaction(strapi, async ({ trx }) => {
    const known = (await marks(strapi, trx).forUpdate().first()) as { value: string } | undefined;
    const after = parsed(source, known);
    const rows = (await table(strapi, trx, source.tableName)
      .select('id', 'document_id', `${source.column} as phone`)
      .where('id', '>', after)
      .orderBy('id')
      .limit(AT_ONCE)) as Row[];
    const last = rows.at(-1);
    const isFull = rows.length === AT_ONCE;
    // A few without a phone are not worth a write a minute.
    if (!last || (!isFull && rows.every(({ phone }) => lastDigits(phone) === null))) return false;
    await indexPhones(strapi, trx, rows);
    await marks(strapi, trx).update({ value: written(source, Number(last.id)) });
    return isFull;
  });

/** Forgets digits that are of no contact's phone any more. */
const forgetGone = async (
  strapi: Core.Strapi,
  source: PhoneSource,
  isStopped: () => boolean
): Promise<void> => {
  const executor = await currentExecutor(strapi);
  for (let last = 0; !isStopped();) {
    const rows = (await table(strapi, executor, PHONES_TABLE)
      .select('id', 'digits', 'document_id')
      .where('id', '>', last)
      .orderBy('id')
      .limit(AT_ONCE)) as { id: number; digits: string; document_id: string }[];
    const ids = [...new Set(rows.map(({ document_id: id }) => id))];
    const contacts = (await table(strapi, executor, source.tableName)
      .select('document_id', `${source.column} as phone`)
      .whereIn('document_id', ids)) as ContactPhone[];
    const kept = new Set(
      contacts.map(({ document_id: id, phone }) => `${lastDigits(phone) ?? ''}/${id}`)
    );
    const gone = rows.filter(({ digits, document_id: id }) => !kept.has(`${digits}/${id}`));
    if (gone.length > 0) {
      await table(strapi, executor, PHONES_TABLE)
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

const stops = new WeakMap<Core.Strapi, () => Promise<void>>();

/** Makes the mark, fills what is there in the background, and looks each minute for what came. */
export const startFillingPhones = async (strapi: Core.Strapi): Promise<void> => {
  const source = phoneSourceOf(strapi);
  if (!source) return;
  await table(strapi, await currentExecutor(strapi), SITE_TABLE)
    .insert({ ...MARK, value: written(source, 0) })
    .onConflict('name')
    .ignore();
  const logFault = createFaultLog(strapi.log);
  const detached = createDetached();
  let forget = false;
  const work = createBackgroundWork({
    detached,
    async pass(isStopped) {
      while (!isStopped() && (await fillSome(strapi, source))) await pause();
      if (!forget) return;
      forget = false;
      await forgetGone(strapi, source, isStopped);
    },
    failed: (error) => logFault('switchboard: phones of contacts were not indexed', error),
  });
  strapi.cron.add({
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
  const giveUpStart = whenLoaded(strapi, () => work.wake());
  stops.set(strapi, () => {
    giveUpStart();
    return work.stop();
  });
};

/** Lets the step under way commit. */
export const stopFillingPhones = async (strapi: Core.Strapi): Promise<void> =>
  stops.get(strapi)?.();
