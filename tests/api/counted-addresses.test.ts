import { type Site, startSite } from '../support/site';

const PING = '/api/service-pos/v1/ping';
const WEBHOOKS = '/api/fw-crm/v1/webhooks';

const statuses = async (
  site: Site,
  count: number,
  path: string,
  headers: (n: number) => Record<string, string>
): Promise<number[]> => {
  const seen: number[] = [];
  for (let n = 0; n < count; n += 1) {
    seen.push((await site.request('GET', path, { as: 'nobody', headers: headers(n) })).status);
  }
  return seen;
};

const from = (n: number) => ({ 'x-forwarded-for': `203.0.113.${n}` });
const badKey = (n: number) => ({ ...from(n), 'x-pos-key': 'pos_live_unknown' });
const badPassword = (n: number) => ({
  ...from(n),
  authorization: `Basic ${Buffer.from('nobody@example.test:wrong').toString('base64')}`,
});

describe('failures behind a proxy', () => {
  it('that is trusted without a count cannot be spread over addresses of one’s own making', async () => {
    const site = await startSite({ env: { SITE_PROXY: '{"koa":true}' } });
    try {
      expect(site.log().match(/maxIpsCount/g)?.length).toBeGreaterThanOrEqual(1);
      for (const [path, headers] of [
        [PING, badKey],
        [WEBHOOKS, badPassword],
      ] as const) {
        const seen = await statuses(site, 35, path, headers);
        expect(seen.slice(0, 30)).toEqual(Array<number>(30).fill(401));
        expect(seen.slice(30)).toEqual(Array<number>(5).fill(429));
      }
      // Whoever authenticates passes.
      expect((await site.request('GET', WEBHOOKS, { headers: from(1) })).status).toBe(200);
    } finally {
      await site.stop();
    }
  }, 120_000);

  it('that is counted are those of each client, and nothing is warned of', async () => {
    const site = await startSite({ env: { SITE_PROXY: '{"koa":true,"maxIpsCount":1}' } });
    try {
      expect(site.log()).not.toContain('maxIpsCount');
      const seen = await statuses(site, 35, WEBHOOKS, badPassword);
      expect(new Set(seen)).toEqual(new Set([401]));
      const one = await statuses(site, 35, WEBHOOKS, () => badPassword(250));
      expect(one.slice(30)).toEqual(Array<number>(5).fill(429));
    } finally {
      await site.stop();
    }
  }, 120_000);
});
