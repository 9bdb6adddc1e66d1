/**
 * A week of a small shop with two tills, as records that they would have sent. The same days always
 * give the same records, so that what was sent already is known by its ids.
 */

const DAYS = 7;
const HOUR = 3_600_000;
const MINUTE = 60_000;
const CURRENCY = 'GBP';

/** Prices in minor units; `shop` and `market` are what each location begins with. */
export const ITEMS = [
  { sku: 'MUG-BLUE', gtin: '4006381333931', name: 'Blue mug', price: 899, shop: 60, market: 20 },
  { sku: 'MUG-RED', name: 'Red mug', price: 899, shop: 55, market: 20 },
  { sku: 'BOWL-SMALL', name: 'Bowl, small', price: 1250, shop: 45, market: 15 },
  { sku: 'BOWL-LARGE', name: 'Bowl, large', price: 1990, shop: 40, market: 12 },
  { sku: 'PLATE-FLAT', name: 'Plate, flat', price: 1450, shop: 48, market: 16 },
  { sku: 'POT-1L', name: 'Teapot, 1 l', price: 3400, shop: 24, market: 0, low_at: 6 },
  { sku: 'TEA-GREEN', name: 'Green tea', price: 450, shop: 70, market: 30, low_at: 5 },
  { sku: 'TEA-MINT', name: 'Mint tea', price: 450, shop: 65, market: 30 },
  { sku: 'COFFEE-250', name: 'Coffee, 250 g', price: 780, shop: 60, market: 25 },
  { sku: 'HONEY-500', name: 'Honey, 500 g', price: 650, shop: 50, market: 24 },
  { sku: 'CANDLE', name: 'Candle', price: 540, shop: 60, market: 40 },
  { sku: 'CARD-SPRING', name: 'Card, spring', price: 320, shop: 80, market: 60, low_at: 20 },
];

/** A product that the shop sells and no one has entered: it waits among the unmapped ones. */
export const UNKNOWN = { sku: 'SCARF-GREY', price: 2400 };

/** Tills by name; `ref` is what each calls its location, `sales` how many it makes a day. */
export const TILLS = [
  { name: 'Front counter', id: 'front', ref: 'SHOP', stock: 'shop', cashiers: ['Ada', 'Ben'] },
  { name: 'Market stall', id: 'market', ref: 'MARKET', stock: 'market', cashiers: ['Cleo'] },
];
const SALES_A_DAY = { front: [6, 9], market: [3, 5] };
const CUSTOMERS = ['grace@example.test', 'alan@example.test', 'ada@example.test'];
const DELIVERY_DAY = 3;
const COUNT_DAY = 5;
const SCARF_DAYS = [4, 5];

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
const randomFrom = (seed) => {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
};

/** The midnights of the clock on the wall that the days begin and the last one ends with. */
const midnights = (first) =>
  Array.from({ length: DAYS + 1 }, (_one, day) => {
    const [year, month, date] = first.split('-').map(Number);
    return new Date(year, month - 1, date + day).getTime();
  });

const iso = (at) => new Date(at).toISOString();
const totalOf = (lines) => lines.reduce((sum, one) => sum + one.quantity * one.unit_price, 0);

/** The sales of one till on one day, and what comes back of them. */
const dayOfTill = (till, day, start, random) => {
  const pick = (list) => list[Math.floor(random() * list.length)];
  const stocked = ITEMS.filter((item) => item[till.stock] > 0);
  const [least, most] = SALES_A_DAY[till.id];
  const count = least + Math.floor(random() * (most - least + 1));
  const records = [];
  for (let n = 0; n < count; n += 1) {
    const at = start + 9 * HOUR + Math.floor(((n + random()) * 8 * HOUR) / count);
    const first = Math.floor(random() * stocked.length);
    const lines = Array.from({ length: 1 + Math.floor(random() * 3) }, (_line, index) => {
      const item = stocked[(first + index * 5) % stocked.length];
      return { sku: item.sku, quantity: 1 + Math.floor(random() * 2), unit_price: item.price };
    });
    const scarf = till.id === 'front' && n === 1 ? SCARF_DAYS.indexOf(day) : -1;
    if (scarf >= 0) lines.push({ ...UNKNOWN_LINE, quantity: scarf + 1 });
    const id = `week-${till.id}-${day + 1}-${n + 1}`;
    const sale = {
      external_id: id,
      occurred_at: iso(at),
      currency: CURRENCY,
      total: totalOf(lines),
      line_items: lines,
      meta: { cashier: pick(till.cashiers) },
      ...(n % 4 === 2 && { customer: { email: pick(CUSTOMERS) } }),
    };
    records.push({ kind: 'sale', at, body: sale });
    if (n % 5 === 3) records.push(refundOf(sale, at + 40 * MINUTE, day % 3 === 2));
  }
  return records;
};

const UNKNOWN_LINE = { sku: UNKNOWN.sku, unit_price: UNKNOWN.price };

/** One piece of the first line; what is broken does not go back to the shelf. */
const refundOf = (sale, at, broken) => {
  const [{ sku, unit_price: price }] = sale.line_items;
  return {
    kind: 'refund',
    at,
    body: {
      external_id: `${sale.external_id}-r`,
      sale_external_id: sale.external_id,
      occurred_at: iso(at),
      currency: CURRENCY,
      total: price,
      restock: !broken,
      reason: broken ? 'Broken' : 'Changed their mind',
      line_items: [{ sku, quantity: 1 }],
    },
  };
};

/**
 * A refund whose sale the site never got: it is held until a user decides.
 * @param {string} at  ISO 8601; no closing of the week has it
 */
export const heldRefund = (at) => ({
  kind: 'refund',
  at: Date.parse(at),
  body: {
    external_id: 'week-front-held',
    sale_external_id: 'paper-receipt-0412',
    occurred_at: at,
    currency: CURRENCY,
    total: 540,
    restock: true,
    reason: 'Sold while the till was broken',
    line_items: [{ sku: 'CANDLE', quantity: 1 }],
  },
});

/** Goods delivered to the shop before it opened. */
const delivery = (start) => {
  const at = start + 8 * HOUR;
  return {
    kind: 'inventory',
    at,
    body: {
      external_id: 'week-delivery',
      occurred_at: iso(at),
      mode: 'relative',
      counts: ITEMS.slice(0, 6).map(({ sku }) => ({ sku, quantity: 24, reason: 'Delivery' })),
    },
  };
};

/** A till's own sums of its day; the market's last one is some change short. */
const closingOf = (till, day, [from, to], records) => {
  const inDay = records.filter(({ at, kind }) => at >= from && at < to && kind !== 'inventory');
  const sums = (kind) => {
    const own = inDay.filter((one) => one.kind === kind);
    return { count: own.length, total: own.reduce((sum, { body }) => sum + body.total, 0) };
  };
  const sales = sums('sale');
  if (till.id === 'market' && day === DAYS - 1) sales.total += 250;
  return {
    external_id: `week-${till.id}-${day + 1}-closing`,
    occurred_at: iso(to - 5 * HOUR),
    from: iso(from),
    to: iso(to),
    totals: [{ currency: CURRENCY, sales, refunds: sums('refund') }],
    external_ids: inDay.map(({ body }) => body.external_id),
  };
};

/** How many of an item there should be in the shop at an instant. */
const bookedAt = ({ sku, shop }, at, records) =>
  records
    .filter((one) => one.at <= at)
    .reduce((level, { kind, body }) => {
      const lines = (body.line_items ?? body.counts).filter((line) => line.sku === sku);
      const pieces = lines.reduce((sum, { quantity }) => sum + quantity, 0);
      if (kind === 'sale') return level - pieces;
      return kind === 'inventory' || body.restock ? level + pieces : level;
    }, shop);

/** A mug and two candles are not where they should be. */
const MISSING = { 'MUG-RED': 1, CANDLE: 2 };

/**
 * The week that begins with a day (`YYYY-MM-DD`, by this process's clock on the wall).
 * @returns what each till sent, by its id: records in the order of their times, closings; and the
 *   stocktake of the shop
 */
export const weekFrom = (first) => {
  const starts = midnights(first);
  const week = {};
  for (const till of TILLS) {
    const random = randomFrom(till.id === 'front' ? 11 : 23);
    const records = starts
      .slice(0, DAYS)
      .flatMap((start, day) => dayOfTill(till, day, start, random));
    if (till.id === 'front') records.push(delivery(starts[DELIVERY_DAY]));
    records.sort((a, b) => a.at - b.at);
    const closings = starts
      .slice(0, DAYS)
      .map((start, day) => closingOf(till, day, [start, starts[day + 1]], records));
    week[till.id] = { records, closings };
  }
  const countedAt = starts[COUNT_DAY] + 19 * HOUR;
  const counts = ITEMS.map((item) => ({
    item: item.sku,
    quantity: bookedAt(item, countedAt, week.front.records) - (MISSING[item.sku] ?? 0),
    reason: 'Stocktake',
  }));
  return { tills: week, stocktake: { occurred_at: iso(countedAt), counts } };
};

/** The day that a week begins with whose last day is yesterday. */
export const lastWeek = (now = new Date()) => {
  const day = new Date(now.getFullYear(), now.getMonth(), now.getDate() - DAYS);
  const two = (number) => String(number).padStart(2, '0');
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
};
