import { type CountryCode, parsePhoneNumberFromString } from 'libphonenumber-js';
import { z } from '@strapi/utils';
import type { CustomersService, SaleCustomer } from '../../../shared/contracts/customers';
import { inChunks } from '../database/written-rows';
import { endpoint, type Endpoints } from '../http/endpoint';
import { listQuery, paginationMeta } from '../http/pagination';
import { pageOf } from '../webhooks/managing/outputs';
import { lockEmails, phoneCandidates, phoneColumn, purchasesOf } from './contact-integrity';
import { binWhere, readRows } from './mapping/records';
import { columnOf, getInspected, type ValueColumn } from './mapping/sources';
import { crmRecords } from './resources/crm-records';
import { fitsContact } from './resources/schemas';
import { keptInput } from './resources/to-data';
import { findByEmail, upsertContact } from './resources/upsert-contact';
import {
  follow,
  isValueKind,
  readUnits,
  toUnits,
  unitsText,
  type ValueKind,
} from './rules/lifetime-value';
import type { App } from '../app';

/** A phone number as the whole world writes it; null: it is none. */
const e164 = (phone: string, country: string | undefined): string | null => {
  const parsed = parsePhoneNumberFromString(phone, country as CountryCode | undefined);
  return parsed?.isValid() ? parsed.number : null;
};

/**
 * Up to two contacts with a phone number, without those in the bin. Two mean that it is ambiguous.
 * @param phone in E.164
 * @param country of numbers that are stored without a prefix
 */
const findByPhone = async (app: App, phone: string, country: string | undefined) => {
  const watched = getInspected(app, 'contact');
  const attribute = phoneColumn(app)?.attribute ?? '';
  const found: string[] = [];
  for (const ids of inChunks(await phoneCandidates(app, phone))) {
    const where = { $and: [{ documentId: { $in: ids } }, ...binWhere(watched, false)] };
    const reading = { keys: new Set(['phone']), tags: false };
    for (const entry of await readRows(app, watched, where, reading)) {
      if (e164(String(entry[attribute] ?? ''), country) !== phone) continue;
      found.push(String(entry.documentId));
      if (found.length > 1) return found;
    }
  }
  return found;
};

const valueSource = (app: App): (ValueColumn & { kind: ValueKind }) | null => {
  const watched = getInspected(app, 'contact');
  const found = columnOf(app, watched, 'lifetime_value');
  if (!found) return null;
  const { type } = found.shape;
  return { ...found, kind: watched.source.own ? 'own' : isValueKind(type) ? type : 'decimal' };
};

/** The service `customers`, which the tills use if the site has both. */
export class Customers implements CustomersService {
  constructor(private readonly app: App) {}

  async attach(
    customer: SaleCustomer,
    { create, country }: Parameters<CustomersService['attach']>[1]
  ): Promise<string | null> {
    const { app } = this;
    const input: SaleCustomer = Object.fromEntries(
      Object.entries(customer).filter(
        ([key, value]) => value.trim() !== '' && fitsContact(key, value)
      )
    );
    const { email } = input;
    const phone = input.phone === undefined ? null : e164(input.phone, country);
    // Before anything is read: who comes with the same waits here.
    if (email !== undefined) await lockEmails(app, [email]);
    else if (phone !== null) await lockEmails(app, [`phone:${phone}`]);
    else return null;
    const known = email === undefined ? null : await findByEmail(app, email);
    if (known !== null) return known;
    const [byPhone, second] = phone === null ? [] : await findByPhone(app, phone, country);
    if (second !== undefined) return null;
    if (byPhone !== undefined) return byPhone;
    return create ? this.create(input) : null;
  }

  async lockValue(contact: string): Promise<boolean> {
    const source = valueSource(this.app);
    return !source || (await this.rowsOf(source, contact)).length > 0;
  }

  async followPurchases(
    contact: string,
    { change, digits, before }: Parameters<CustomersService['followPurchases']>[1]
  ): Promise<void> {
    const source = valueSource(this.app);
    if (!source || change === 0n) return;
    const db = await this.app.db.current();
    // The plugin's own column holds sums of any currency exactly.
    const known = source.kind === 'own' ? 0n : toUnits(await before(), digits);
    for (const row of await this.rowsOf(source, contact)) {
      const value = follow(readUnits(row.value), {
        before: known,
        after: known + toUnits(change, digits),
        column: source.kind,
      });
      // Past the lifecycles: no event is published.
      await db
        .table(source.tableName)
        .where({ id: row.id })
        .update({ [source.column]: unitsText(value) });
    }
  }

  private async create({ email, ...rest }: SaleCustomer): Promise<string> {
    const { app } = this;
    const onlyNew = { ...rest, source: 'pos' };
    if (email === undefined) {
      const { source } = getInspected(app, 'contact');
      return (await crmRecords(app, 'contact').create(keptInput(app, source, onlyNew))).id;
    }
    const { contact } = await upsertContact(app, { email }, { onlyNew, forKnown: () => ({}) });
    return contact.id;
  }

  /** The rows of a contact with its value, locked. */
  private async rowsOf({ tableName, column }: ValueColumn, contact: string) {
    const db = await this.app.db.current();
    return db
      .table(tableName)
      .select('id', `${column} as value`)
      .where({ document_id: contact })
      .orderBy('id')
      .forUpdate();
  }
}

const purchase = z.object({
  kind: z.enum(['sale', 'refund']),
  external_id: z.string(),
  occurred_at: z.string(),
  currency: z.string().nullable(),
  total: z.number().int(),
});

const LIST = {
  may: 'crm.read',
  whole: true,
  params: { id: z.string() },
  query: listQuery,
  response: pageOf(purchase),
} as const;

/** In both APIs; docs/shop.md#customers. */
export const purchases: Endpoints = {
  'contact-purchases': {
    find: endpoint('GET /contacts/:id/purchases', LIST, async ({ app, ctx, query }) => {
      const page = query();
      const { id } = await crmRecords(app, 'contact').get(ctx.params.id);
      return (
        (await purchasesOf(app)?.list(id, page)) ?? { data: [], meta: paginationMeta(page, 0) }
      );
    }),
  },
};
