import type { Core } from '@strapi/strapi';
import type { CustomersService, SaleCustomer } from '../../../../shared/contracts/customers';
import { getInspected } from '../change-capture/mapping/registry';
import { lockEmail } from '../contact-integrity/email-lock';
import { crmRecords } from '../resources/crm-records';
import { findByEmail } from '../resources/find-by-email';
import { INPUTS } from '../resources/inputs';
import { keptInput } from '../resources/kept-input';
import { upsertContact } from '../resources/upsert-contact';
import { e164, findByPhone } from './find-by-phone';

/** What a contact's column holds: two decimals, eight digits before them. */
const LARGEST = 99_999_999.99;

/** Keeps what a contact can hold: a name that is too long must not cost it its sale. */
const fitting = (customer: SaleCustomer): SaleCustomer =>
  Object.fromEntries(
    Object.entries(customer).filter(
      ([key, value]) =>
        value.trim() !== '' && INPUTS.contact.update.safeParse({ [key]: value }).success
    )
  );

/** A value in units of so many decimals, as a whole number of its smallest part, and back. */
const scaled = (value: unknown, places: number): bigint =>
  BigInt(Math.round(Number(value ?? 0) * 10 ** places) || 0);

const unscaled = (value: bigint, places: number): number =>
  Math.max(-LARGEST, Math.min(LARGEST, Number(value) / 10 ** places));

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

    async addValue(contact, change, digits) {
      const { source, uid } = getInspected(strapi, 'contact');
      const field = source.fields.find(({ path }) => path === 'lifetime_value');
      const attribute = field?.attribute;
      if (!attribute || change === 0n) return;
      const rows = (await strapi.db
        .queryBuilder(uid)
        .init({
          select: ['id', attribute],
          where: { documentId: contact },
          orderBy: { id: 'asc' },
        })
        .forUpdate()
        .execute()) as ({ id: number } & Record<string, unknown>)[];
      const places = Math.max(2, digits);
      const isWhole = ['integer', 'biginteger'].includes(field.shape?.type ?? '');
      for (const row of rows) {
        const sum = scaled(row[attribute], places) + change * 10n ** BigInt(places - digits);
        const value = unscaled(sum, places);
        // Past the lifecycles: nobody is told of it.
        await strapi.db
          .queryBuilder(uid)
          .where({ id: row.id })
          .update({ [attribute]: isWhole ? Math.round(value) : value })
          .execute();
      }
    },
  };
};
