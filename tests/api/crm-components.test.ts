import { describeEach, anyDatabase } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { type EventLog, openEventLog } from './crm-helpers';

const BRANCH = 'api::branch.branch';

describeEach(anyDatabase(), 'a mapped type with components', (database) => {
  let site: Site;
  let log: EventLog;
  beforeAll(async () => {
    const fields = { name: 'title', address: 'place', 'fields.depots': 'depots' };
    site = await startSite({
      database,
      options: {
        webhooks: { dispatch: false },
        sources: { company: { contentType: BRANCH, fields } },
      },
    });
    log = await openEventLog(site);
  }, 180_000);
  afterAll(() => site?.stop(), 60_000);

  const documents = (method: string, params: object) =>
    site.control('documents', { uid: BRANCH, method, params });

  it('carries their public values, and hears a change of a component alone', async () => {
    const { documentId } = await documents('create', {
      data: {
        title: 'North',
        place: { street: 'One', city: 'York', alarmCode: 'secret' },
        depots: [{ city: 'Leeds' }, { city: 'Hull' }],
      },
    });
    const [created] = await log.take();
    expect(created).toMatchObject({
      event: 'company.created',
      data: {
        name: 'North',
        address: { street: 'One', city: 'York' },
        fields: {
          depots: [
            { street: null, city: 'Leeds' },
            { street: null, city: 'Hull' },
          ],
        },
      },
    });
    expect(JSON.stringify(created)).not.toContain('secret');
    const { place } = await documents('findOne', { documentId, populate: ['place'] });
    await documents('update', { documentId, data: { place: { id: place.id, street: 'Two' } } });
    const events = await log.take();
    expect(events.map(({ event, data }) => [event, data.address])).toEqual([
      ['company.updated', { street: 'Two', city: 'York' }],
    ]);
    await documents('update', { documentId, data: { place: { id: place.id, street: 'Two' } } });
    expect(await log.take()).toEqual([]);
    await documents('delete', { documentId });
    const { dates: _dates, ...asItWas } = events[0]?.data ?? {};
    expect(await log.take()).toMatchObject([{ event: 'company.deleted', data: asItWas }]);
  });
});
