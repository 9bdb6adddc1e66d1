import { minorDigits } from '../../../../shared/currencies';
import { isRecord, jsonIn } from '../../runtime/text';

/** In minor units. */
type Money = { currency: string; amount: bigint } | null;

export interface Findable {
  externalId: string;
  /** As sent; null if it is not looked into. */
  body: string | null;
  /** Its amount in the figures; null if it does not count. */
  money: Money;
}

const strings = (values: readonly unknown[]): string[] =>
  values.filter((value) => typeof value === 'string');

const entriesOf = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value) ? value.filter(isRecord) : [];

const customerTexts = (customer: unknown): string[] => {
  if (!isRecord(customer)) return [];
  const { first_name: first, last_name: last } = customer;
  return [...strings(Object.values(customer)), strings([first, last]).join(' ')];
};

const contentOf = (body: string | null): { texts: string[]; money: Money } => {
  const value = body === null ? null : jsonIn(body);
  if (!isRecord(value)) return { texts: [], money: null };
  const lines = [...entriesOf(value.line_items), ...entriesOf(value.counts)];
  const { total, currency } = value;
  return {
    texts: [
      ...strings(lines.flatMap(({ sku, gtin }) => [sku, gtin])),
      ...strings([value.sale_external_id]),
      ...customerTexts(value.customer),
    ],
    money:
      typeof currency === 'string' && typeof total === 'number' && Number.isSafeInteger(total)
        ? { currency, amount: BigInt(total) }
        : null,
  };
};

const AMOUNT = /^(-?\d{1,15})(?:[.,](\d{1,4}))?$/;

/** Tests if a text is an amount, such as 17.98, 17,98 or 18, or in minor units: 1798. */
const amountTest = (text: string): ((money: Money) => boolean) => {
  const [, whole, fraction] = AMOUNT.exec(text) ?? [];
  if (whole === undefined) return () => false;
  return (money) => {
    if (money === null) return false;
    const digits = minorDigits(money.currency);
    if (fraction === undefined && money.amount === BigInt(whole)) return true;
    const shown = (fraction ?? '').padEnd(digits, '0');
    return shown.length === digits && money.amount === BigInt(`${whole}${shown}`);
  };
};

/** Matches records by part of an id (own or refunded), SKU, GTIN or customer, in any case; or by a complete amount. */
export const recordMatcher = (search: string): ((record: Findable) => boolean) => {
  const wanted = search.toLowerCase();
  const isAmount = amountTest(search.replaceAll(' ', ''));
  const has = (text: string): boolean => text.toLowerCase().includes(wanted);
  return ({ externalId, body, money }) => {
    if (has(externalId) || isAmount(money)) return true;
    const content = contentOf(body);
    return content.texts.some(has) || isAmount(content.money);
  };
};
