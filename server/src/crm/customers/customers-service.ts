import type { Core } from '@strapi/strapi';
import type { CustomersService, SaleCustomer } from '../../../../shared/contracts/customers';
import { getInspected } from '../mapping/registry';
import { lockEmail } from '../contact-integrity/email-lock';
import { crmRecords } from '../resources/crm-records';
import { findByEmail } from '../resources/find-by-email';
import { INPUTS } from '../resources/inputs';
import { keptInput } from '../resources/kept-input';
import { upsertContact } from '../resources/upsert-contact';
import { currentExecutor, table } from '../../database/connection';
import { e164, findByPhone } from './find-by-phone';
import {
  follow,
  isExact,
  isValueColumn,
  readUnits,
  toUnits,
  unitsText,
  type ValueColumn,
} from './lifetime-value';

/** Keeps what a contact can hold: a name that is too long must not cost it its sale. */
const fitting = (customer: SaleCustomer): SaleCustomer =>
  Object.fromEntries(
    Object.entries(customer).filter(
      ([key, value]) =>
        value.trim() !== '' && INPUTS.contact.update.safeParse({ [key]: value }).success
    )
  );

interface ValueRow {
  id: number;
  value: unknown;
}

interface ValueSource {
  tableName: string;
  column: string;
  kind: ValueColumn;
}

/** Where this site keeps the lifetime values of contacts; null: nowhere. */
const valueSource = (strapi: Core.Strapi): ValueSource | null => {
  const { source, uid } = getInspected(strapi, 'contact');
  const field = source.fields.find(({ path }) => path === 'lifetime_value');
  if (!field?.attribute) return null;
  const { tableName, attributes } = strapi.db.metadata.get(uid);
  const { columnName } = attributes[field.attribute] as { columnName?: string };
  const type = field.shape?.type ?? '';
  return {
    tableName,
    column: columnName ?? field.attribute,
    kind: source.own ? 'own' : isValueColumn(type) ? type : 'decimal',
  };
};

/** The service `customers`, which the tills ask where the site has both. */
export const createCustomersService = ({ strapi }: { strapi: Core.Strapi }): CustomersService => {
  const create = async (input: SaleCustomer): Promise<string> => {
    const { email, ...rest } = input;
    const onlyNew = { ...rest, source: 'pos' };
    if (email === undefined) {
      const { source } = getInspected(strapi, 'contact');
      const known = keptInput(strapi, source, onlyNew);
      return (await crmRecords(strapi, 'contact').create(known)).id;
    }
    const { contact } = await upsertContact(strapi, { email }, { onlyNew, forKnown: () => ({}) });
    return contact.id;
  };

  const rowsOf = async ({ tableName, column }: ValueSource, contact: string): Promise<ValueRow[]> =>
    (await table(strapi, await currentExecutor(strapi), tableName)
      .select('id', `${column} as value`)
      .where({ document_id: contact })
      .orderBy('id')
      .forUpdate()) as ValueRow[];

  return {
    async attach(customer, { create: mayCreate, country }) {
      const input = fitting(customer);
      const { email } = input;
      const phone = input.phone === undefined ? null : e164(input.phone, country);
      // Before anything is read: who comes with the same waits here.
      if (email !== undefined) await lockEmail(strapi, email);
      else if (phone !== null) await lockEmail(strapi, `phone:${phone}`);
      else return null;
      const known = email === undefined ? null : await findByEmail(strapi, email);
      if (known !== null) return known;
      const [byPhone, second] = phone === null ? [] : await findByPhone(strapi, phone, country);
      if (second !== undefined) return null;
      if (byPhone !== undefined) return byPhone;
      return mayCreate ? create(input) : null;
    },

    async lockValue(contact) {
      const source = valueSource(strapi);
      if (source) await rowsOf(source, contact);
    },

    async followPurchases(contact, { change, digits, before }) {
      const source = valueSource(strapi);
      if (!source || change === 0n) return;
      const executor = await currentExecutor(strapi);
      const known = isExact(source.kind) ? 0n : toUnits(await before(), digits);
      for (const row of await rowsOf(source, contact)) {
        const value = follow(readUnits(row.value), {
          before: known,
          after: known + toUnits(change, digits),
          column: source.kind,
        });
        // Past the lifecycles: nobody is told of it.
        await table(strapi, executor, source.tableName)
          .where({ id: row.id })
          .update({ [source.column]: unitsText(value) });
      }
    },
  };
};
