// Takes the receipts of a till that has a fixed format, reshapes, signs and forwards them.
import { createHash, timingSafeEqual } from 'node:crypto';
import http from 'node:http';
import tillClient from 'strapi-plugin-switchboard/till-client';

const { POS_URL, POS_KEY, POS_SECRET, TILL_TOKEN, PORT = '8080', FOLDER = 'receipts' } = process.env;
const MAX_BYTES = 256 * 1024;

/** `19.99` as 1999, by its digits: `19.99 * 100` is 1998.9999999999998. */
export const minorUnits = (amount, digits = 2) => {
  const match = /^(-?)(\d+)(?:[.,](\d+))?$/.exec(String(amount).trim());
  if (!match) throw new Error(`${amount} is no amount`);
  const [, sign, whole, fraction = ''] = match;
  if (fraction.length > digits) throw new Error(`${amount} has more than ${digits} decimals`);
  return Number(`${sign}${whole}${fraction.padEnd(digits, '0')}`);
};

const lineItems = (receipt) =>
  receipt.Positions.map(({ Code, Ean, Qty, Price }) => ({
    ...(Code && { sku: String(Code) }),
    ...(Ean && { gtin: String(Ean) }),
    quantity: Math.abs(Number(Qty)),
    unit_price: minorUnits(Price),
  }));

const base = (receipt) => ({
  // The till's own number, with its own prefix: the same in every retry.
  external_id: `${receipt.Register}-${receipt.ReceiptNo}`,
  occurred_at: receipt.Time,
});

export const toSale = (receipt) => ({
  ...base(receipt),
  currency: receipt.Currency,
  total: minorUnits(receipt.Total),
  line_items: lineItems(receipt),
});

export const toRefund = (receipt) => ({
  ...base(receipt),
  sale_external_id: `${receipt.Register}-${receipt.OriginalReceiptNo}`,
  reason: receipt.Note,
  line_items: lineItems(receipt),
});

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
      try {
        const receipt = JSON.parse(await readAll(request));
        if (receipt.Type === 'RETURN') await till.refund(toRefund(receipt));
        else await till.sale(toSale(receipt));
        reply(200);
      } catch (error) {
        console.error(`A receipt could not be reshaped: ${error.message}`);
        reply(400);
      }
    })
    .listen(Number(PORT));
};

if (POS_URL && POS_KEY && POS_SECRET && TILL_TOKEN) serve();
