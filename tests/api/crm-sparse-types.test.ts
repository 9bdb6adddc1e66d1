import { describeEach, anyDatabase } from '../support/databases';
import type { Site } from '../support/site';
import { waitFor } from '../support/wait';
import { CRM, type EventLog, names, useWatchedSite } from './crm-helpers';
import { logSoFar } from './delivery-support';
import { createTill } from './pos-till';

/** With functions in it. */
const env = { SWITCHBOARD_OPTIONS_FILE: require.resolve('./crm-sparse-options.js') };

describeEach(anyDatabase(), "a site's own types that keep little", (database) => {
  let site: Site;
  let log: EventLog;
  useWatchedSite(
    database,
    (watched) => {
      ({ site, log } = watched);
    },
    {},
    env
  );

  const linesWith = async (words: string) =>
    (await logSoFar(site)).split('\n').filter((line) => line.includes(words));

  it('get their contact from a form, and its event, without what they do not keep', async () => {
    const params = { data: { mail: 'ada@x.test' }, status: 'published' };
    await site.control('documents', { uid: 'api::guest.guest', method: 'create', params });
    const events = await log.take();
    expect(names(events)).toEqual(['contact.created', 'form.submitted']);
    expect(events[1]?.data).toMatchObject({
      new_contact: true,
      contact: { email: 'ada@x.test', first_name: 'Ada', job_title: null, source: null },
    });
    await site.control('documents', {
      uid: 'api::guest.guest',
      method: 'create',
      params: { data: { mail: 'ADA@x.test' }, status: 'published' },
    });
    expect(names(await log.take())).toEqual(['form.submitted']);
    const lines = await linesWith('keeps no');
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(
      /api::lead\.lead keeps no source, job_title, status, fields\.size of a contact/
    );
  });

  it('get their contacts from an import, without what they do not keep', async () => {
    const upload = async (csv: string, query = '') => {
      const { body } = await site.request('POST', `/switchboard/contacts/import${query}`, {
        body: Buffer.from(csv),
        headers: { 'content-type': 'text/csv' },
      });
      return body.data;
    };
    const csv =
      'email,first_name,job_title,tags,fields.size\n' +
      'bea@x.test,Bea,Engineer,VIP,XL\n' +
      'ada@x.test,Ada,Countess,VIP,M\n';
    const counts = { total: 2, created: 1, updated: 0, unchanged: 1, failed: 0, issues: [] };
    expect(await upload(csv, '?dry_run=true')).toMatchObject(counts);
    expect(await upload(csv)).toMatchObject(counts);
    expect(names(await log.take())).toEqual(['contact.created']);
    const tags = await site.request('GET', `${CRM}/tags`);
    expect(tags.body.data).toEqual([]);
  });

  it('get the customers of tills', async () => {
    const till = await createTill(site, { customers: 'create' });
    const customer = { email: 'cyd@x.test', first_name: 'Cyd', last_name: 'X' };
    const { body } = await till.sale([['MUG', 1]], { customer });
    expect(body.ok).toBe(true);
    const made = async () =>
      (await site.request('GET', `${CRM}/contacts?email=cyd@x.test`)).body.data[0];
    expect(await waitFor(made, 30_000, 'the customer')).toMatchObject({
      first_name: 'Cyd',
      last_name: null,
    });
  });

  it('say that a campaign was sent, with its counts, once', async () => {
    const { body: campaign } = await site.request('POST', `${CRM}/campaigns`, {
      body: { title: 'Spring' },
    });
    await log.take();
    const counts = { total: 3, sent: 2, failed: 1 };
    const record = () =>
      site.control('service', {
        uid: 'plugin::switchboard.email',
        method: 'campaignSent',
        args: [{ campaign: campaign.id, ...counts }],
      });
    expect(await record()).toEqual({ counted: true });
    expect(await log.take()).toEqual([
      {
        event: 'campaign.sent',
        data: { id: campaign.id, title: 'Spring', subject: null, ...counts },
      },
    ]);
    expect(await record()).toEqual({ counted: false, because: 'already_sent' });
    const now = await site.request('GET', `${CRM}/campaigns/${campaign.id}`);
    expect(now.body).toMatchObject({ status: 'sent', total: null });
  });

  it('still refuse over REST what they do not keep, by its name', async () => {
    const answer = await site.request('POST', `${CRM}/contacts`, {
      body: { email: 'dee@x.test', job_title: 'Engineer' },
    });
    expect(answer.status).toBe(400);
    expect(answer.body.error.message).toMatch(/^job_title: /);
  });
});
