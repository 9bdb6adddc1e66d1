import { type Site, startSite } from '../support/site';

describe('input that would reach nothing that takes it', () => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite();
  }, 180_000);
  afterAll(async () => {
    await site?.stop();
  }, 60_000);

  it.each(['multipart/form-data', 'Multipart/Form-Data; boundary=x', 'multipart/mixed'])(
    'is a 415 where it is a multipart form: %s',
    async (type) => {
      for (const path of [
        '/api/fw-crm/v1/contacts',
        '/api/fw-crm/v1/webhooks',
        '/switchboard/items',
      ]) {
        const answer = await site.request('POST', path, {
          body: 'name=a',
          headers: { 'content-type': type },
        });
        expect(answer.status).toBe(415);
        expect(answer.body.error.name).toBe('UnsupportedMediaTypeError');
      }
    }
  );

  it('is a 400 where a text is too long for its column', async () => {
    const long = 'x'.repeat(300);
    for (const [path, body, field] of [
      ['companies', { name: 'a', website: long }, 'website'],
      ['campaigns', { title: 'a', subject: long }, 'subject'],
    ] as const) {
      const answer = await site.request('POST', `/api/fw-crm/v1/${path}`, { body });
      expect(answer.status).toBe(400);
      expect(answer.body.error.details.errors[0].path).toEqual([field]);
    }
  });
});
