import {
  groupOf,
  ITEMS,
  LOCATIONS,
  onlyLocationOf,
  openingOf,
  type Input,
  type RefundInput,
  type SaleInput,
} from './world';

/**
 * The rule of stock as plainly as it can be said, for records of which everything is known and all
 * grace periods are over. Uses none of the code it judges.
 *
 * @param accepted  records in the order of their arrival, each once
 * @returns the level by `item@location`
 */
export const plainFold = (accepted: readonly Input[]): Record<string, number> => {
  const moves: { item: number; location: number; time: number; quantity: number }[] = [];
  const sales = accepted.filter((input): input is SaleInput => input.kind === 'sale');
  const refunds = accepted
    .filter((input): input is RefundInput => input.kind === 'refund')
    .sort((a, b) => {
      if (a.time !== b.time) return a.time - b.time;
      if (a.externalId !== b.externalId) return a.externalId < b.externalId ? -1 : 1;
      return a.connection - b.connection;
    });

  for (const { lines, location, time } of sales) {
    for (const { item, quantity } of lines) {
      moves.push({ item, location, time, quantity: -quantity });
    }
  }

  const left = new Map(
    sales.map((sale) => {
      const items = new Map<number, number>();
      for (const { item, quantity } of sale.lines) {
        items.set(item, (items.get(item) ?? 0) + quantity);
      }
      return [sale, items] as const;
    })
  );

  for (const refund of refunds) {
    const fitting = sales.filter(
      (sale) =>
        sale.externalId === refund.saleExternalId &&
        groupOf(sale.connection) === groupOf(refund.connection)
    );
    const own = fitting.filter((sale) => sale.connection === refund.connection);
    const [sale, other] = own.length > 0 ? own : fitting;
    if (other) continue;

    const place =
      refund.namedLocation === 'none'
        ? (sale?.location ?? onlyLocationOf(refund.connection))
        : refund.namedLocation;
    const stock = sale && left.get(sale);
    const asked =
      refund.lines ?? [...(stock ?? [])].map(([item, quantity]) => ({ item, quantity }));
    for (const { item, quantity } of asked) {
      const back = stock ? Math.min(quantity, stock.get(item) ?? 0) : quantity;
      if (stock) stock.set(item, (stock.get(item) ?? 0) - back);
      if (place !== null && refund.restock) {
        moves.push({ item, location: place, time: refund.time, quantity: back });
      }
    }
  }

  for (const input of accepted) {
    if (input.kind !== 'adjustment') continue;
    for (const line of input.lines) {
      moves.push({ ...line, location: input.location, time: input.time });
    }
  }

  const levels: Record<string, number> = {};
  for (const item of ITEMS) {
    for (const location of LOCATIONS) {
      let from = -Infinity;
      let level = openingOf(item, location);
      for (const input of accepted) {
        if (input.kind !== 'count' || input.location !== location || input.time < from) continue;
        const line = input.lines.find((counted) => counted.item === item);
        if (!line) continue;
        from = input.time;
        level = line.quantity;
      }
      for (const move of moves) {
        if (move.item === item && move.location === location && move.time > from) {
          level += move.quantity;
        }
      }
      levels[`${item}@${location}`] = level;
    }
  }
  return levels;
};
