import { anyServer, describeEach } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { CRM, inCode } from './crm-helpers';
import { waitFor } from '../support/wait';

jest.setTimeout(180_000);

const EVENT = 'contact.created';
const URL = 'http://127.0.0.1:9/';
const options = { webhooks: { dispatch: false } };

describeEach(anyServer(), 'who subscribed, remembered by two nodes', (database) => {
  let changing: Site;
  let writing: Site;
  beforeAll(async () => {
    changing = await startSite({ database, options });
    writing = await changing.sibling();
  });
  afterAll(async () => {
    await writing?.stop();
    await changing?.stop();
  });

  let written = 0;

  /** Makes a contact on the other node. @returns the ids of the webhooks that hear of it */
  const heardOf = async (): Promise<number[]> => {
    written += 1;
    const email = `written-${written}@example.test`;
    const { documentId } = (await inCode(writing, 'contact').create({ email })) as {
      documentId: string;
    };
    const rows = await writing.control<{ webhook_id: number }[]>('sql', {
      statement: 'SELECT webhook_id FROM switchboard_deliveries WHERE subject_id = ?',
      bindings: [documentId],
    });
    return rows.map(({ webhook_id: id }) => Number(id));
  };

  const create = async (active: boolean): Promise<number> => {
    const body = { name: 'remembered', url: URL, events: [EVENT], active };
    const { body: answer } = await changing.request('POST', `${CRM}/webhooks`, { body });
    return answer.id;
  };

  const change = async (id: number, body: object): Promise<void> => {
    const { status } = await changing.request('PUT', `${CRM}/webhooks/${id}`, { body });
    expect(status).toBe(200);
  };

  /** Writes some contacts, one after the other. @returns how often who subscribed was asked for */
  const countQuestions = (writes: number): Promise<number> =>
    writing.evaluate(async ({ strapi }, count) => {
      let questions = 0;
      const hear = ({ sql }: { sql: string }) => {
        if (/^select .*switchboard_webhooks/is.test(sql)) questions += 1;
      };
      strapi.db.connection.on('query', hear);
      const contacts = strapi.documents('plugin::switchboard.contact' as never);
      for (let made = 0; made < count; made += 1)
        await contacts.create({ data: { first_name: 'Asked' } } as never);
      strapi.db.connection.removeListener('query', hear);
      return questions;
    }, writes);

  it('is asked less than once for each write', async () => {
    await create(true);
    // A machine that takes half a second for each write asks for each.
    await waitFor(
      async () => (await countQuestions(20)) < 20,
      60_000,
      'an answer to be used twice'
    );
  });

  it('is what a change on the other node has made of it, from the answer on', async () => {
    const ids = await Promise.all(Array.from({ length: 25 }, () => create(false)));
    for (const active of [true, false, true, false]) {
      await Promise.all(
        ids.map(async (id) => {
          await change(id, { active });
          expect((await heardOf()).filter((one) => one === id)).toEqual(active ? [id] : []);
        })
      );
    }
    await Promise.all(
      ids.map(async (id) => {
        await change(id, { active: true });
        await changing.request('DELETE', `${CRM}/webhooks/${id}`);
        expect(await heardOf()).not.toContain(id);
      })
    );
  });

  it('is waited for by the answer with a new secret as well', async () => {
    const id = await create(true);
    const asked = performance.now();
    const { status } = await changing.request('POST', `${CRM}/webhooks/${id}/secret`, { body: {} });
    expect(status).toBe(200);
    // For so long the other node may sign with the old one.
    expect(performance.now() - asked).toBeGreaterThan(490);
    await changing.request('DELETE', `${CRM}/webhooks/${id}`);
  });

  it('is what the document service has made of it, from when that resolves', async () => {
    const id = await create(false);
    const write = (active: boolean): Promise<unknown> =>
      changing.evaluate(
        async ({ strapi }, given, isActive) => {
          const webhooks = strapi.documents('plugin::switchboard.webhook' as never);
          const { documentId } = await webhooks.findFirst({ filters: { id: given } } as never);
          await webhooks.update({ documentId, data: { active: isActive } } as never);
        },
        id,
        active
      );
    await heardOf();
    await write(true);
    expect(await heardOf()).toContain(id);
    await write(false);
    expect(await heardOf()).not.toContain(id);
  });

  it('is what a transaction has made of it, half a second after its commit', async () => {
    const id = await create(false);
    await heardOf();
    await changing.evaluate(
      ({ strapi }, given) =>
        strapi.db.transaction(async () => {
          const webhooks = strapi.service('plugin::switchboard.webhooks');
          await webhooks.update(given, { active: true }, { mayMoveHeaders: false });
        }),
      id
    );
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(await heardOf()).toContain(id);
  });

  it('knows at once that a module is off', async () => {
    const turn = (on: boolean) =>
      changing.request('PUT', '/switchboard/modules', { body: { webhooks: on } });
    expect(await heardOf()).not.toEqual([]);
    expect((await turn(false)).status).toBe(200);
    expect(await heardOf()).toEqual([]);
    await turn(true);
    expect(await heardOf()).not.toEqual([]);
  });
});
