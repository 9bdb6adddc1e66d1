import { createHash } from 'node:crypto';
import { databases, describeEach } from '../support/databases';
import type { Answer } from '../support/http';
import type { Site } from '../support/site';
import { CRM, type EventLog, inCode, names, useWatchedSite } from './crm-helpers';

const CONTACT = 'plugin::switchboard.contact';
const ADMIN_CONTACTS = `/content-manager/collection-types/${CONTACT}`;
const INQUIRY = 'api::inquiry.inquiry';
const forms = [
  { contentType: INQUIRY, title: 'Inquiry', fields: { email: 'mail', last_name: 'lastName' } },
];
const ROUNDS = 5;

/** Which of the 256 locks an address has. */
const lockOf = (email: string): number =>
  Number.parseInt(createHash('sha256').update(email).digest('hex').slice(0, 6), 16) % 256;

describeEach(databases(), 'one address that several make at the same moment', (database) => {
  let site: Site;
  let log: EventLog;
  useWatchedSite(
    database,
    (watched) => {
      ({ site, log } = watched);
    },
    { forms }
  );

  const viaForm = (mail: string) =>
    site.request('POST', '/api/inquiries', { body: { data: { mail, lastName: 'Form' } } });
  const viaAdmin = (email: string) =>
    site.request('POST', ADMIN_CONTACTS, { body: { email, first_name: 'Admin' } });
  const viaRest = (email: string) =>
    site.request('POST', `${CRM}/contacts`, { body: { email, phone: '1' } });
  const viaImport = (...emails: string[]) =>
    site.request('POST', '/switchboard/contacts/import', {
      body: Buffer.from(`email,job_title\n${emails.map((one) => `${one},Import\n`).join('')}`),
      headers: { 'content-type': 'text/csv' },
    });
  const contactsOf = async (email: string): Promise<Record<string, unknown>[]> =>
    (await site.request('GET', `${CRM}/contacts?email=${email}`)).body.data;

  /** Made, or told in so many words that the address belongs to somebody. */
  const expectMadeOrTaken = ({ status, body }: Answer<{ error?: unknown }>, made: number) => {
    if (status === made) return;
    expect([status, body.error]).toEqual([
      400,
      expect.objectContaining({ message: 'email: belongs to another contact' }),
    ]);
  };

  it('becomes one contact, and no form is lost', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const email = `race${round}@example.test`;
      const shouted = email.toUpperCase();
      const [entries, admins, rest, imports] = await Promise.all([
        Promise.all([viaForm(email), viaForm(shouted), viaForm(email)]),
        Promise.all([viaAdmin(email), viaAdmin(shouted)]),
        Promise.all([viaRest(email), viaRest(shouted)]),
        Promise.all([viaImport(email), viaImport(`other${round}@example.test`, shouted)]),
      ]);
      expect(entries.map(({ status }) => status)).toEqual([201, 201, 201]);
      for (const answer of admins) expectMadeOrTaken(answer, 201);
      for (const answer of rest) expectMadeOrTaken(answer, 201);
      expect(imports.map(({ status, body }) => [status, body.data?.issues])).toEqual([
        [200, []],
        [200, []],
      ]);
      expect(await contactsOf(email)).toHaveLength(1);
      const events = await log.take();
      const own = events.filter(({ data }) =>
        [data.email, data.contact?.email].some((one) => one?.toLowerCase() === email)
      );
      const made = own.filter(({ event }) => event === 'contact.created');
      const submitted = own.filter(({ event }) => event === 'form.submitted');
      expect([made.length, submitted.length]).toEqual([1, 3]);
      expect(submitted.filter(({ data }) => data.new_contact).length).toBeLessThanOrEqual(1);
    }
  }, 180_000);

  it('goes to one of two contacts that are changed to it, or to a form', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const email = `moved${round}@example.test`;
      const [one, two, three] = await Promise.all(
        ['a', 'b', 'c'].map((who) => inCode(site, 'contact').create({ email: `${who}-${email}` }))
      );
      const [entry, byAdmin, ...byRest] = await Promise.all([
        viaForm(email),
        site.request('PUT', `${ADMIN_CONTACTS}/${one.documentId}`, { body: { email } }),
        ...[two, three].map(({ documentId }) =>
          site.request('PATCH', `${CRM}/contacts/${documentId}`, { body: { email } })
        ),
      ]);
      expect(entry.status).toBe(201);
      for (const answer of [byAdmin, ...byRest]) expectMadeOrTaken(answer, 200);
      expect(await contactsOf(email)).toHaveLength(1);
    }
    await log.take();
  }, 180_000);

  it('does not hold up other addresses: many new ones at once are all kept', async () => {
    const mails = Array.from({ length: 20 }, (_none, n) => `many-${n}@example.test`);
    const entries = await Promise.all(mails.map(viaForm));
    expect(entries.map(({ status }) => status)).toEqual(mails.map(() => 201));
    const events = await log.take();
    expect(names(events).filter((name) => name === 'contact.created')).toHaveLength(20);
  }, 120_000);

  it('is kept by a form that meets it in a transaction that took no lock', async () => {
    const creating = site.evaluate(async ({ strapi, state }) => {
      await strapi.db.transaction(async () => {
        const data = { email: 'held@example.test' };
        await strapi.db.query('plugin::switchboard.contact').create({ data });
        state.isHeld = true;
        await new Promise((resolve) => {
          setTimeout(resolve, 500);
        });
      });
    });
    while (!(await site.control('state', { key: 'isHeld' }))) continue;
    const entry = await viaForm('HELD@example.test');
    await creating;
    expect(entry.status).toBe(201);
    expect((await contactsOf('held@example.test')).map((one) => one.last_name)).toEqual(['Form']);
    const events = await log.take();
    expect(names(events)).toEqual(['contact.created', 'contact.updated', 'form.submitted']);
    expect(events[2]?.data.new_contact).toBe(false);
  });

  it('is kept by a form that meets it within the millisecond in which it was changed', async () => {
    const creating = site.evaluate(async ({ strapi, state }) => {
      const now = Date.now();
      const own = globalThis.Date;
      globalThis.Date = new Proxy(own, {
        construct: (target, values: unknown[]) =>
          Reflect.construct(target, values.length > 0 ? values : [now]) as Date,
        get: (target, key) => (key === 'now' ? () => now : Reflect.get(target, key)),
      });
      state.thaw = () => {
        globalThis.Date = own;
      };
      setTimeout(state.thaw, 2000);
      await strapi.db.transaction(async () => {
        const data = { email: 'frozen@example.test' };
        await strapi.db.query('plugin::switchboard.contact').create({ data });
        state.isFrozen = true;
        await new Promise((resolve) => {
          setTimeout(resolve, 500);
        });
      });
    });
    while (!(await site.control('state', { key: 'isFrozen' }))) continue;
    const entry = await viaForm('frozen@example.test');
    await creating;
    await site.evaluate(({ state }) => state.thaw());
    expect(entry.status).toBe(201);
    const events = await log.take();
    expect(names(events)).toEqual(['contact.created', 'contact.updated', 'form.submitted']);
    expect(events[2]?.data.new_contact).toBe(false);
  });

  it('does not dead-lock an import with a transaction of several forms', async () => {
    // Taken in this order by the forms, and in the other one by whoever takes the locks by number.
    const [second, first] = Array.from({ length: 40 }, (_none, n) => `lock${n}@example.test`)
      .sort((one, other) => lockOf(one) - lockOf(other))
      .filter((_email, at, all) => at === 0 || at === all.length - 1) as [string, string];
    const sending = site.evaluate(
      async ({ strapi, state }, mails: string[]) => {
        await strapi.db.transaction(async () => {
          for (const mail of mails) {
            await strapi.documents('api::inquiry.inquiry').create({ data: { mail } });
            state.isSending = true;
            await new Promise((resolve) => {
              setTimeout(resolve, 1500);
            });
          }
        });
      },
      [first, second]
    );
    while (!(await site.control('state', { key: 'isSending' }))) continue;
    const [imported] = await Promise.all([viaImport(second, first), sending]);
    expect([imported.status, imported.body.data?.failed]).toEqual([200, 0]);
    for (const email of [first, second]) {
      expect((await contactsOf(email)).map((one) => one.job_title)).toEqual(['Import']);
    }
    await log.take();
  });

  it('is refused with a 400 to the second of two transactions of a caller, too', async () => {
    const outcomes = await site.evaluate(async ({ strapi }) => {
      const create = () =>
        strapi.db.transaction(async () => {
          const data = { email: 'both@example.test' };
          await strapi.documents('plugin::switchboard.contact').create({ data });
          await new Promise((resolve) => {
            setTimeout(resolve, 300);
          });
        });
      const results = await Promise.allSettled([create(), create()]);
      return results.map((result: PromiseSettledResult<void>) =>
        result.status === 'fulfilled' ? 'made' : [result.reason.name, result.reason.message]
      );
    });
    expect(outcomes).toHaveLength(2);
    expect(outcomes).toContain('made');
    expect(outcomes).toContainEqual(['ValidationError', 'email: belongs to another contact']);
    await log.take();
  });
});
