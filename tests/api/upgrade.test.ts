import {
  type Delivery,
  DELIVERY_STATES,
  type ManagedWebhook,
} from '../../shared/contracts/webhooks';
import { signBody } from '../support/till-signature';
import { databases, describeEach, readEverything } from '../support/databases';
import { fixtureNotes, fixtureVersions, loadFixture, startFixture } from '../support/fixtures';
import { type Received, type Receiver, startReceiver } from '../support/receiver';
import { type As, type Site } from '../support/site';
import { waitFor } from '../support/wait';

jest.setTimeout(240_000);

const API = '/api/fw-crm/v1';
/** The journal's entries of a fixture are as old as it is. */
const KEPT = { logDays: 3650, journalDays: 3650 };
const QUIET = { webhooks: { ...KEPT, dispatch: false }, pos: { process: false } };
/** Tables that went with what the queues do now; their rows lived for seconds. */
const GONE = ['switchboard_line_ends', 'switchboard_manual_requests', 'switchboard_webhook_paces'];

const versions = fixtureVersions();

describeEach(databases(), 'a database of an earlier version', (database) => {
  describe.each(versions)('%s', (version) => {
    let notes = fixtureNotes(version, database);
    let site: Site;
    let receiver: Receiver;
    let before: Record<string, string[]>;

    beforeAll(async () => {
      receiver = await startReceiver();
      notes = fixtureNotes(version, database, receiver.url);
      site = await startFixture(version, {
        database,
        options: QUIET,
        receiverUrl: receiver.url,
        prepare: async (kind, name) => {
          await loadFixture(version, kind, name, receiver.url);
          before = await readEverything(kind, name);
        },
      });
    });
    afterAll(async () => {
      await receiver?.close();
      await site?.stop();
    });

    const list = async (route: string, as?: As): Promise<Record<string, unknown>[]> => {
      const more = `${route.includes('?') ? '&' : '?'}per_page=100`;
      const answer = await site.request('GET', `${route}${more}`, { as });
      expect([route, answer.status]).toEqual([route, 200]);
      return answer.body.data;
    };

    it('keeps every row of every table', async () => {
      const after = await readEverything(database, site.databaseName);
      const idsOf = (rows: string[]) => rows.map((row) => JSON.parse(row).id as number);
      for (const [name, rows] of Object.entries(before)) {
        if (!name.startsWith('switchboard_') || GONE.includes(name)) continue;
        expect(Object.keys(after)).toContain(name);
        expect({ name, rows: rows.length }).not.toEqual({ name, rows: 0 });
        // Some have no id.
        expect({ name, lost: Math.max(0, rows.length - after[name]!.length) }).toEqual({
          name,
          lost: 0,
        });
        const ids = new Set(idsOf(after[name]!));
        expect({ name, missing: idsOf(rows).filter((id) => !ids.has(id)) }).toEqual({
          name,
          missing: [],
        });
      }
    });

    it('names its contacts, and titles them by their names', async () => {
      const path = `/content-manager/collection-types/plugin::switchboard.contact?pageSize=100`;
      const { results } = (await site.request('GET', path)).body;
      expect(results.length).toBeGreaterThan(0);
      for (const { display_name: name, first_name: first, last_name: last, email } of results)
        expect(name).toBe([first, last].filter(Boolean).join(' ') || email);
      const { settings, layouts } = (
        await site.request(
          'GET',
          '/content-manager/content-types/plugin::switchboard.contact/configuration'
        )
      ).body.data.contentType;
      expect(settings).toMatchObject({ mainField: 'display_name', defaultSortBy: 'display_name' });
      expect(layouts.list[0]).toBe('display_name');
      expect(JSON.stringify(layouts.edit)).not.toContain('display_name');
    });

    it.each([...Object.keys(notes.records)])('answers the same %s', async (resource) => {
      const route = resource === 'trashed' ? 'contacts?trashed=true' : resource;
      expect(await list(`${API}/${route}`)).toEqual(
        notes.records[resource]!.map((record) => expect.objectContaining(record))
      );
    });

    it('has the same stock and the same records of tills', async () => {
      const levels = await list('/switchboard/levels');
      expect(
        levels.map(({ sku, location, quantity }) => ({
          sku,
          location: (location as { code?: string }).code ?? location,
          quantity,
        }))
      ).toEqual(notes.levels);
      expect(await list('/switchboard/pos-events')).toEqual(
        notes.events.map((event) => expect.objectContaining(event))
      );
      const rebuilt = await site.request('POST', '/switchboard/levels/rebuild', { body: {} });
      expect(rebuilt.body.data.differences).toEqual([]);
    });

    it('answers the same: money, mappings, stock, recoveries, journal', async () => {
      const routes = Object.entries(notes.answers!);
      expect(routes.length).toBeGreaterThan(10);
      for (const [route, data] of routes) {
        expect([route, JSON.stringify(data)]).not.toEqual([route, '[]']);
        const answer = await site.request('GET', route);
        expect({ route, data: answer.body.data }).toMatchObject({ route, data });
      }
    });

    it('reads a delivery of each state, with its record, and what it is sent', async () => {
      const told = DELIVERY_STATES.map((state) =>
        notes.deliveries.find((it) => it.state === state && it.subject !== undefined)
      );
      const more = [
        notes.deliveries.find(({ subject }) => subject),
        notes.deliveries.find(({ replayed }) => replayed),
        notes.deliveries.find(({ error }) => error === 'skipped'),
      ];
      for (const note of [...told, ...more]) {
        expect(note).toBeDefined();
        const { body, ...rest } = note!;
        const answer = await site.request('GET', `${API}/webhook-deliveries/${note!.delivery_id}`);
        expect(answer.body).toMatchObject({ ...rest, request: { body } });
      }
    });

    it('has a webhook with each thing that a webhook can have since', async () => {
      const webhooks = (await list(`${API}/webhooks`)) as unknown as ManagedWebhook[];
      const has = (test: (webhook: ManagedWebhook) => unknown) =>
        expect(webhooks.filter(test)).not.toEqual([]);
      has(({ header_names: names }) => names.includes('Authorization'));
      has(({ ordering }) => ordering === 'by_record');
      has(({ payload }) => payload === 'thin');
      has(({ filter }) => filter);
      has(({ rate_per_second: rate, concurrency }) => rate && concurrency);
    });

    it('can still read its webhooks’ secrets and headers, and has them as they were', async () => {
      for (const { id, name, secret, headers = {}, ...settings } of notes.webhooks) {
        const answer = await site.request('GET', `${API}/webhooks/${id}`);
        expect(answer.body).toMatchObject({ id, name, secret, ...settings });
        expect([name, answer.body.headers]).toEqual([name, headers]);
      }
    });

    it('has webhooks without headers of their own, which may be given some', async () => {
      const bare = notes.webhooks.filter(({ headers = {} }) => Object.keys(headers).length === 0);
      expect(bare.length).toBeGreaterThanOrEqual(4);
      for (const { id } of bare) {
        const route = `${API}/webhooks/${id}`;
        const headers = { 'X-Since': 'the upgrade' };
        expect((await site.request('PATCH', route, { body: { headers } })).status).toBe(200);
        expect((await site.request('GET', route)).body.headers).toEqual(headers);
      }
    });

    it('can still read its connections’ secrets, and knows which were revoked', async () => {
      for (const { name, key, secret } of notes.connections) {
        const timestamp = String(Math.floor(Date.now() / 1000));
        const answer = await site.request('POST', '/api/service-pos/v1/sale', {
          as: 'nobody',
          body: '{}',
          headers: {
            'content-type': 'application/json',
            'x-pos-key': key,
            'x-pos-timestamp': timestamp,
            'x-pos-signature': signBody(secret, timestamp, Buffer.from('{}')),
          },
        });
        const expected = name === 'Stolen till' ? 'revoked_key' : 'schema_invalid';
        expect([name, answer.body.code]).toEqual([name, expected]);
      }
    });

    it('has the same deliveries in the same states', async () => {
      const found: Record<string, unknown>[] = [];
      for (const { id } of notes.webhooks)
        found.push(...(await list(`${API}/webhooks/${id}/deliveries`)));
      expect(found).toEqual(
        notes.deliveries.map(({ body, ...note }) =>
          expect.objectContaining({ ...note, request: expect.objectContaining({ body }) })
        )
      );
    });

    const logged = async (): Promise<Delivery[]> => {
      const found: Delivery[] = [];
      for (const { id } of notes.webhooks)
        found.push(...((await list(`${API}/webhooks/${id}/deliveries`)) as unknown as Delivery[]));
      return found;
    };

    it('has the attempts of its deliveries', async () => {
      const found = await logged();
      expect(found.map(({ attempts }) => attempts.length)).toEqual(found.map(({ tries }) => tries));
    });

    type Tables = Record<string, string[]>;
    const parsed = (rows: string[]) => rows.map((row) => JSON.parse(row));
    const CONTACT = 'plugin::switchboard.contact';
    const contactRows = (tables: Tables): { id: number; action: string; properties: unknown }[] =>
      parsed(tables.admin_permissions!).filter(
        ({ action, subject }) => subject === CONTACT && /\.(create|read|update)$/.test(action)
      );
    /** Without permissions for a contact's fields. */
    const unlikeContacts = (name: string, tables: Tables): string[] => {
      const ids = new Set(contactRows(tables).map(({ id }) => id));
      if (name === 'admin_permissions')
        return tables[name]!.filter((row) => !ids.has(JSON.parse(row).id));
      if (name !== 'admin_permissions_role_lnk') return tables[name]!;
      // Ids and places in the role move if a permission is made again.
      return parsed(tables[name]!)
        .filter(({ permission_id: id }) => !ids.has(id))
        .map(({ permission_id: permission, role_id: role }) => `${permission} ${role}`);
    };
    /** The fields of contacts, by role and action. */
    const contactGrants = (tables: Tables): Map<string, string[]> => {
      const roles = new Map(parsed(tables.admin_roles!).map(({ id, code }) => [id, code]));
      const roleOf = new Map(
        parsed(tables.admin_permissions_role_lnk!).map((row) => [row.permission_id, row.role_id])
      );
      return new Map(
        contactRows(tables).map(({ id, action, properties }) => [
          `${roles.get(roleOf.get(id))} ${action}`,
          (typeof properties === 'string' ? JSON.parse(properties) : properties).fields,
        ])
      );
    };

    it('takes and gives no permission but what is new', async () => {
      const after = await readEverything(database, site.databaseName);
      for (const name of [
        'admin_permissions',
        'admin_permissions_role_lnk',
        'strapi_api_token_permissions',
        'up_permissions',
        'admin_roles',
        'admin_users_roles_lnk',
      ])
        expect(unlikeContacts(name, after)).toEqual(
          expect.arrayContaining(unlikeContacts(name, before))
        );
      // New: who may read the parts of a contact's name may read the name. The host gives it to super admins.
      const grants = contactGrants(before);
      expect(grants.size).toBeGreaterThan(0);
      for (const [grant, fields] of contactGrants(after)) {
        const isSuper = grant.startsWith('strapi-super-admin ');
        const isNamed = ['first_name', 'last_name', 'email', 'phone'].every((name) =>
          fields.includes(name)
        );
        const isNew = isSuper || (grant.endsWith('.read') && isNamed);
        expect([grant, [...fields].sort()]).toEqual([
          grant,
          [...(grants.get(grant) ?? []), ...(isNew ? ['display_name'] : [])].sort(),
        ]);
      }
      const held: { action: string; subject: string | null }[] = await site.evaluate(({ strapi }) =>
        strapi.db
          .query('admin::permission')
          .findMany({ where: { role: { code: 'switchboard-crm-manager' } } })
      );
      expect(held.map(({ action }) => action)).not.toContain('plugin::switchboard.stock.manage');
      expect(held).not.toContainEqual(
        expect.objectContaining({
          action: 'plugin::content-manager.explorer.delete',
          subject: 'plugin::switchboard.contact',
        })
      );
    });

    it('lets in who was let in: tokens and application passwords', async () => {
      const { tokens, manager } = notes;
      const status = async (as: As, method = 'GET', route = `${API}/webhooks`) =>
        (await site.request(method, route, { as })).status;
      expect(await status({ token: tokens.full })).toBe(200);
      expect(await status({ token: tokens.readOnly })).toBe(200);
      expect(await status({ token: tokens.custom })).toBe(200);
      expect(await status({ token: tokens.custom }, 'GET', `${API}/contacts`)).toBe(403);
      expect(await status({ basic: [manager.email, manager.applicationPassword] })).toBe(200);
    });

    it('sends what waits, with the same ids and bytes, and to nobody who is switched off', async () => {
      const waiting = notes.deliveries.filter(({ status }) => status === 'pending');
      const off = notes.webhooks
        .filter(({ name }) => name.startsWith('Switched off'))
        .map(({ id }) => id);
      const [resting, due] = [
        waiting.filter((it) => off.includes(it.webhook_id)),
        waiting.filter((it) => !off.includes(it.webhook_id)),
      ];
      expect([resting.length, due.length]).not.toContain(0);
      const isOneOf = (wanted: typeof waiting) => (request: Received) =>
        wanted.some((it) => it.delivery_id === request.headers['x-service-delivery']);
      const expectBytes = (requests: Received[]) => {
        for (const request of requests) {
          const sent = waiting.find(
            (it) => it.delivery_id === request.headers['x-service-delivery']
          );
          expect(request.body).toBe(sent?.body);
          const { headers = {} } = notes.webhooks.find(({ id }) => id === sent?.webhook_id)!;
          for (const [header, value] of Object.entries(headers))
            expect(request.headers[header.toLowerCase()]).toBe(value);
        }
      };
      await site.restart({ options: { webhooks: { ...KEPT, pollSeconds: 1 } } });
      expectBytes(await receiver.waitFor(due.length, 20_000, isOneOf(due)));
      expect(receiver.requests.filter(isOneOf(resting))).toEqual([]);
      for (const id of off)
        await site.request('PATCH', `${API}/webhooks/${id}`, { body: { active: true } });
      expectBytes(await receiver.waitFor(resting.length, 20_000, isOneOf(resting)));
    });

    it('adds the attempts of today to those that were there', async () => {
      const before = notes.deliveries.find(({ status }) => status === 'sent')!;
      const sent = (await logged()).find(({ delivery_id: id }) => id === before.delivery_id)!;
      expect(sent.attempts).toHaveLength(before.tries);
      const again = await site.request<Delivery>(
        'POST',
        `${API}/webhook-deliveries/${sent.id}/retry`
      );
      expect(again.body.attempts).toEqual([
        ...sent.attempts,
        expect.objectContaining({ manual: true }),
      ]);
      expect(again.body.tries).toBe(sent.tries + 1);
    });

    it('keeps who has a record processed again, and who accepts a refund without its sale', async () => {
      const { event_id: id } = notes.events.find(({ state }) => state === 'held')!;
      const route = `/switchboard/pos-events/${id}`;
      expect((await site.request('GET', route)).body.data.by_hand).toEqual([]);
      for (const action of ['reprocess', 'accept-without-sale'])
        expect((await site.request('POST', `${route}/${action}`)).status).toBe(200);
      const kept = { made_by: expect.any(String), at: expect.any(String) };
      expect((await site.request('GET', route)).body.data.by_hand).toEqual([
        { action: 'reprocessed', ...kept },
        { action: 'accepted_without_sale', ...kept },
      ]);
    });

    it('applies what had been accepted and waited', async () => {
      const pending = notes.events.filter(({ state }) => state === 'pending');
      expect(pending).not.toEqual([]);
      for (const { event_id } of pending)
        await waitFor(
          async () =>
            (await site.request('GET', `/switchboard/pos-events/${event_id}`)).body.data.state ===
            'applied',
          20_000,
          'the waiting sale to be applied'
        );
    });
  });
});
