import { takeOverRecords } from '../../../server/src/pos/processing/old-records';
import { type SmallSite, startSmallSite } from '../../support/small-site';

/** What version 0.2 left to be found out later is written down by the first boot after it. */
describe('what version 0.2 knew of records', () => {
  let site: SmallSite;
  const rows = (name: string) => site.connection(`switchboard_${name}`);

  beforeAll(async () => {
    site = await startSmallSite({});
    const { schema } = site.connection;
    await schema.alterTable('switchboard_levels', (table) => table.bigInteger('test_count_at'));
    await rows('levels').insert([
      { item_id: 5, location_id: 1, test_count_at: 700 },
      { item_id: 6, location_id: 1, test_count_at: null },
    ]);
    await rows('pos_mappings').insert([
      { id: 3, kind: 'sku', item_id: 5, made_item: true },
      { id: 4, kind: 'sku', item_id: 6, made_item: false },
      { id: 7, kind: 'sku', item_id: 8, made_item: true, undone_at: 1 },
    ]);
    await rows('pos_events').insert([
      { id: 10, connection_id: 1, kind: 'sale', items: '[6,5,null,5]' },
      { id: 11, connection_id: 1, kind: 'sale', items: '[8]' },
      { id: 12, connection_id: 1, kind: 'sale', items: null },
    ]);
    // What the mapping itself has decided is there already.
    await rows('pos_mapped_lines').insert({ mapping_id: 3, event_id: 10, line: 1 });
  });
  afterAll(() => site?.close());

  const lines = () =>
    rows('pos_mapped_lines').select('mapping_id', 'event_id', 'line').orderBy('id');
  const kept = [{ mapping_id: 3, event_id: 10, line: 1 }];

  it('is left alone where the queue of records was moved', async () => {
    await takeOverRecords(site.app);
    expect(await lines()).toEqual(kept);
  });

  it('is every line of an item that a mapping made, and the counts of test mode, once', async () => {
    await site.connection.schema.alterTable('switchboard_pos_events', (table) => {
      table.bigInteger('due_at');
    });
    await takeOverRecords(site.app);
    await takeOverRecords(site.app);
    expect(await lines()).toEqual([...kept, { mapping_id: 3, event_id: 10, line: 3 }]);
    expect(await rows('pos_trial_counts').select('item_id', 'location_id', 'at')).toEqual([
      { item_id: 5, location_id: 1, at: 700 },
    ]);
  });
});
