import type { ExplanationTerm, LevelExplanation, Movement } from '../../shared/contracts/stock';
import type { Page } from '../../shared/contracts/webhooks';
import { describeEach, databases, itOnce } from '../support/databases';
import { type Site, startSite } from '../support/site';
import {
  admin,
  allProcessed,
  createItem,
  createTill,
  isoAgo,
  levelOf,
  settled,
  type Till,
} from './pos-till';

describeEach(databases(), 'why a level is what it is', (database) => {
  let site: Site;
  let till: Till;

  beforeAll(async () => {
    site = await startSite({ database });
    till = await createTill(site);
  }, 120_000);
  afterAll(() => site?.stop(), 60_000);

  const explain = async (sku: string): Promise<LevelExplanation> => {
    const [level] = await admin(site, 'GET', `/levels?sku=${sku}`);
    return admin(site, 'GET', `/levels/${level.id}/explanation`);
  };

  const applied = async (answer: { body: { event_id: number } }): Promise<void> => {
    await settled(site, answer.body.event_id, 'applied');
  };

  const change = (sku: string, quantity: number, reason: string, seconds: number) =>
    till.send('inventory', {
      external_id: `${sku}-${reason}-${seconds}`,
      occurred_at: isoAgo(seconds),
      mode: 'relative',
      counts: [{ sku, quantity, reason }],
    });

  it('is a sum whose first term is what it starts from', async () => {
    await createItem(site, 'SUM', 40);
    const sold = await till.sale([['SUM', 98]], { occurred_at: isoAgo(500) });
    await applied(sold);
    const saleId = JSON.parse(
      (await admin(site, 'GET', `/pos-events/${sold.body.event_id}`)).body
    ).external_id;
    const lines = (quantity: number) => ({ line_items: [{ sku: 'SUM', quantity }] });
    await applied(await till.refund(saleId, { ...lines(24), occurred_at: isoAgo(400) }));
    await applied(
      await till.refund(saleId, { ...lines(2), restock: false, occurred_at: isoAgo(390) })
    );
    await applied(await change('SUM', 80, 'delivery', 300));
    await applied(await change('SUM', 3, ' delivery', 290));
    await applied(await change('SUM', -42, 'broken', 200));
    const { quantity, since, terms, series } = await explain('SUM');
    expect(quantity).toBe(7);
    expect(await levelOf(site, 'SUM')).toBe(7);
    expect(since).toBeNull();
    expect(terms[0]).toEqual({ type: 'opening', reason: null, quantity: 40, movements: 0 });
    expect(terms.slice(1)).toEqual(
      expect.arrayContaining([
        { type: 'sale', reason: null, quantity: -98, movements: 1 },
        { type: 'refund', reason: null, quantity: 24, movements: 1 },
        { type: 'refund', reason: 'no_restock', quantity: 0, movements: 1 },
        { type: 'adjustment', reason: 'delivery', quantity: 83, movements: 2 },
        { type: 'adjustment', reason: 'broken', quantity: -42, movements: 1 },
      ])
    );
    expect(terms).toHaveLength(6);
    expect(series.map((point) => point.quantity)).toEqual([40, -58, -34, 46, 49, 7]);
  });

  /** What a term is the sum of, as the screen asks for it. */
  const movementsOf = async (level: number, { type, reason, rest }: ExplanationTerm) => {
    const query = new URLSearchParams({
      type,
      ...(reason && { reason }),
      ...(rest && { rest: 'true' }),
    });
    const route = `/switchboard/levels/${level}/movements?${query.toString()}`;
    return (await site.request<Page<Movement>>('GET', route)).body.data;
  };

  it('names the movements of each term', async () => {
    await createItem(site, 'TERMS', 5);
    await applied(await till.sale([['TERMS', 1]], { occurred_at: isoAgo(900) }));
    await applied(await till.count([['TERMS', 50]], { occurred_at: isoAgo(800) }));
    const sold = await till.sale([['TERMS', 7]], { occurred_at: isoAgo(700) });
    await applied(sold);
    const saleId = JSON.parse(
      (await admin(site, 'GET', `/pos-events/${sold.body.event_id}`)).body
    ).external_id;
    const back = { line_items: [{ sku: 'TERMS', quantity: 1 }], restock: false };
    await applied(await till.refund(saleId, { ...back, occurred_at: isoAgo(650) }));
    await applied(await change('TERMS', 4, 'delivery', 600));
    await applied(await change('TERMS', 2, ' delivery ', 590));
    for (let n = 0; n < 22; n += 1) await applied(await change('TERMS', 1, `why ${n}`, 500 - n));
    const { level_id: level, terms } = await explain('TERMS');
    expect(terms.map(({ type }) => type).slice(0, 3)).toEqual(['count', 'sale', 'refund']);
    expect(terms.filter(({ rest }) => rest)).toHaveLength(1);
    for (const term of terms) {
      const movements = await movementsOf(level, term);
      expect(movements).toHaveLength(term.movements);
      if (term.reason === 'no_restock') continue;
      expect(movements.reduce((sum, { quantity }) => sum + quantity, 0)).toBe(term.quantity);
    }
    expect(await movementsOf(level, { ...terms[0], type: 'opening' })).toEqual([]);
    expect(await movementsOf(level, { ...terms[0], type: 'transfer' })).toEqual([]);
  });

  itOnce(database)('starts from the latest count, and what came before it is no term', async () => {
    await createItem(site, 'COUNTED', 5);
    await applied(await till.sale([['COUNTED', 1]], { occurred_at: isoAgo(300) }));
    const countedAt = isoAgo(200);
    await applied(await till.count([['COUNTED', 12]], { occurred_at: countedAt }));
    await applied(await till.sale([['COUNTED', 4]], { occurred_at: isoAgo(100) }));
    await applied(await change('COUNTED', 7, 'late', 250));
    const explanation = await explain('COUNTED');
    expect(explanation.terms).toEqual([
      { type: 'count', reason: null, quantity: 12, movements: 1 },
      { type: 'sale', reason: null, quantity: -4, movements: 1 },
    ]);
    expect(explanation.quantity).toBe(8);
    expect(Date.parse(explanation.since!)).toBe(Date.parse(countedAt));
    expect(explanation.series[0]).toEqual({ at: explanation.since, quantity: 12 });
  });

  it('is drawn with a bounded number of points, and named with a bounded number of words', async () => {
    await createItem(site, 'MANY', 1000);
    const records = Array.from({ length: 400 }, (_value, index) => ({
      kind: 'inventory',
      body: {
        external_id: `many-${index}`,
        occurred_at: isoAgo(1000 - index),
        mode: 'relative',
        counts: [{ sku: 'MANY', quantity: -1, reason: `word ${index % 30}` }],
      },
    }));
    for (let start = 0; start < records.length; start += 100) {
      const batch = await till.send('batch', { records: records.slice(start, start + 100) });
      expect(batch.status).toBe(200);
    }
    await allProcessed(site);
    const { quantity, terms, series } = await explain('MANY');
    expect(quantity).toBe(600);
    expect(series.length).toBeLessThanOrEqual(300);
    expect(series.length).toBeGreaterThan(100);
    expect(series.at(-1)?.quantity).toBe(quantity);
    expect(terms.reduce((sum, term) => sum + term.quantity, 0)).toBe(quantity);
    expect(terms.filter(({ rest }) => rest)).toHaveLength(1);
    expect(terms.length).toBeLessThanOrEqual(22);
  });

  itOnce(database)('is a 404 for a level that is none', async () => {
    for (const id of ['999999', 'x']) {
      const { status } = await site.request('GET', `/switchboard/levels/${id}/explanation`);
      expect(status).toBe(404);
    }
  });
});
