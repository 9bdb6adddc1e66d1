// Takes the receipts of a till that has a fixed format, reshapes, signs and forwards them.
import { createHash, timingSafeEqual } from 'node:crypto';
import http from 'node:http';
import { fileURLToPath } from 'node:url';
import { code as currencyOf } from 'currency-codes';
import tillClient from 'strapi-plugin-switchboard/till-client';

const {
  POS_URL,
  POS_KEY,
  POS_SECRET,
  TILL_TOKEN,
  PORT = '8080',
  FOLDER = 'receipts',
} = process.env;
/** What it cannot run without; an empty token would let anybody in. */
const NEEDED = { POS_URL, POS_KEY, POS_SECRET, TILL_TOKEN };
const MAX_BYTES = 256 * 1024;

/**
 * `19.99` as 1999, by its digits: `19.99 * 100` is 1998.9999999999998. How many digits a currency has
 * is said by ISO 4217, and not by `Intl`: 2 for GBP and HUF, 0 for JPY, 3 for KWD.
 */
export const minorUnits = (amount, currency) => {
  const digits = currencyOf(currency ?? '')?.digits ?? 2;
  const match = /^(-?)(\d+)(?:[.,](\d+))?$/.exec(String(amount).trim());
  if (!match) throw new Error(`${amount} is no amount`);
  const [, sign, whole, fraction = ''] = match;
  if (/[^0]/.test(fraction.slice(digits))) {
    throw new Error(`${amount} has more than the ${digits} decimals of ${currency}`);
  }
  return Number(`${sign}${whole}${fraction.slice(0, digits).padEnd(digits, '0')}`);
};

const quantityOf = ({ Qty }) => {
  const quantity = Number(Qty);
  if (!Number.isInteger(quantity) || quantity === 0) throw new Error(`${Qty} is no quantity`);
  return quantity;
};

const lineItems = (receipt, positions) =>
  positions.map((position) => ({
    ...(position.Code && { sku: String(position.Code) }),
    ...(position.Ean && { gtin: String(position.Ean) }),
    quantity: Math.abs(quantityOf(position)),
    unit_price: minorUnits(position.Price, receipt.Currency),
  }));

const base = (receipt) => ({
  // The till's own number, with its own prefix: the same in every retry.
  external_id: `${receipt.Register}-${receipt.ReceiptNo}`,
  occurred_at: receipt.Time,
});

const isSold = (position) => quantityOf(position) > 0;

export const toSale = (receipt) => ({
  ...base(receipt),
  currency: receipt.Currency,
  total: minorUnits(receipt.Total, receipt.Currency),
  line_items: lineItems(receipt, receipt.Positions.filter(isSold)),
});

export const toRefund = (receipt) => ({
  ...base(receipt),
  sale_external_id: `${receipt.Register}-${receipt.OriginalReceiptNo}`,
  ...(receipt.Note && { reason: receipt.Note }),
  line_items: lineItems(receipt, receipt.Positions),
});

/** What a customer hands back while buying something else: no sale is named, so it is put on the shelf. */
const toAdjustment = (receipt, back) => ({
  ...base(receipt),
  external_id: `${base(receipt).external_id}-back`,
  mode: 'relative',
  counts: lineItems(receipt, back).map(({ sku, quantity }) => {
    if (!sku) throw new Error('what is handed back needs a Code');
    return { sku, quantity, reason: 'Handed back' };
  }),
});

/** The records of one receipt, as `[kind, record]`; throws where the receipt makes no sense. */
export const toRecords = (receipt) => {
  if (receipt.Type === 'RETURN') return [['refund', toRefund(receipt)]];
  const back = receipt.Positions.filter((position) => !isSold(position));
  const records = [];
  if (back.length < receipt.Positions.length) records.push(['sale', toSale(receipt)]);
  if (back.length > 0) records.push(['inventory', toAdjustment(receipt, back)]);
  if (records.length === 0) throw new Error('it has no positions');
  return records;
};

const readAll = async (request) => {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > MAX_BYTES) throw new Error('too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
};

const hash = (text) => createHash('sha256').update(text).digest();
const isOurTill = (token) => timingSafeEqual(hash(token ?? ''), hash(TILL_TOKEN));

const serve = () => {
  const till = tillClient.createOfflineTill({
    url: POS_URL,
    key: POS_KEY,
    secret: POS_SECRET,
    folder: FOLDER,
    onSettled: ({ outcome, name, error }) => {
      if (outcome !== 'accepted') console.error(`${name}: ${outcome}: ${error.message}`);
    },
  });
  till.run();
  http
    .createServer(async (request, response) => {
      const url = new URL(request.url, 'http://localhost');
      const reply = (status) => response.writeHead(status).end();
      if (!isOurTill(url.searchParams.get('token'))) return reply(401);
      let records;
      try {
        records = toRecords(JSON.parse(await readAll(request)));
      } catch (error) {
        console.error(`A receipt could not be reshaped: ${error.message}`);
        return reply(400);
      }
      try {
        for (const [kind, record] of records) await till.add(kind, record);
        reply(200);
      } catch (error) {
        // A full disk, for example: the till has to come again, and an id seen twice is a duplicate.
        console.error(`A receipt could not be kept: ${error.message}`);
        reply(500);
      }
    })
    .listen(Number(PORT));
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const missing = Object.keys(NEEDED).filter((name) => !NEEDED[name]?.trim());
  if (missing.length > 0) {
    console.error(`Set ${missing.join(', ')}.`);
    process.exit(1);
  }
  serve();
}
