import {
  type Acceptance,
  acceptBatch,
  submissionOf,
} from '../../../../server/src/pos/intake/accept';
import { applyBatch } from '../../../../server/src/pos/processing/process';
import {
  getRecordStore,
  type LeasedRecord,
  type RecordStore,
} from '../../../../server/src/pos/processing/record-store';
import { wakeConnection, wakeForItems } from '../../../../server/src/pos/processing/waits';
import { readRecord } from '../../../../server/src/pos/rules/validate';
import {
  type ConnectionRow,
  CONNECTIONS_TABLE,
  POS_EVENTS_TABLE,
  POS_WAITS_TABLE,
  RECORD_QUEUE_TABLE,
} from '../../../../server/src/pos/tables';
import { digestOf } from '../../../../server/src/runtime/text';
import {
  ITEMS_TABLE,
  type LevelRow,
  LEVELS_TABLE,
  LOCATIONS_TABLE,
  type MovementRow,
  MOVEMENTS_TABLE,
} from '../../../../server/src/stock/tables';
import { skuDigest } from '../../../../server/src/stock/items';
import { locationDigest } from '../../../../server/src/stock/locations';
import { appOf } from '../../../../server/src/app';
import { explainLevel } from '../../../../server/src/stock/levels-service';
import { rebuildLevels } from '../../../../server/src/stock/check-levels';
import { type SmallSite, startSmallSite } from '../../../support/small-site';
import {
  type Chance,
  CONNECTIONS,
  groupOf,
  idOf,
  type Input,
  ITEMS,
  LOCATIONS,
  onlyLocationOf,
  openingOf,
  type Run,
  UNKNOWN_AT_FIRST,
} from './world';

const FIRST_SECOND = Date.parse('2025-03-01T10:00:00Z');
/** No record is due then while a test runs. */
const NOT_YET = Date.parse('2200-01-01T00:00:00Z');

const skuOf = (item: number): string => `sku-${item}`;
const refOf = (location: number): string => `ref-${location}`;
const mapOf = (locations: readonly number[]): string =>
  JSON.stringify(locations.map((location) => ({ ref: refOf(location), location })));

const kindOf = ({ kind }: Input) =>
  kind === 'count' || kind === 'adjustment' ? 'inventory' : kind;

const bodyOf = (input: Input): object => {
  const common = {
    external_id: input.externalId,
    occurred_at: new Date(FIRST_SECOND + input.time * 1000).toISOString(),
  };
  const lines = input.lines?.map(({ item, quantity }) => ({ sku: skuOf(item), quantity }));
  if (input.kind === 'refund') {
    return {
      ...common,
      sale_external_id: input.saleExternalId,
      restock: input.restock,
      ...(input.namedLocation !== 'none' && { location_ref: refOf(input.namedLocation) }),
      ...(lines && { line_items: lines }),
    };
  }
  const placed = { ...common, location_ref: refOf(input.location) };
  if (input.kind === 'sale') {
    const priced = lines?.map((line) => ({ ...line, unit_price: 100 }));
    return { ...placed, currency: 'EUR', total: 100, line_items: priced };
  }
  return { ...placed, mode: input.kind === 'count' ? 'absolute' : 'relative', counts: lines };
};

/**
 * Lets a run of the small world happen on the plugin's own intake, processing and ledger, over a
 * SQLite in memory. In place of time and of the scheduler, the test says what is due.
 */
export class StockSite {
  private readonly store: RecordStore;
  private known = new Set<number>();
  private mapped = new Set<number>();

  private constructor(private readonly site: SmallSite) {
    // What it runs apart must not be a part of the transaction that asks for it first.
    this.store = getRecordStore(site.app);
  }

  static async start(): Promise<StockSite> {
    const site = await startSmallSite({}, 'http');
    for (const id of LOCATIONS) {
      const code = `location-${id}`;
      const row = { id, name: code, code, code_digest: locationDigest(code), is_default: id === 1 };
      await site.connection(LOCATIONS_TABLE).insert(row);
    }
    for (const id of CONNECTIONS) {
      await site.connection(CONNECTIONS_TABLE).insert({
        id,
        document_id: `connection-${id}`,
        name: `till ${id}`,
        mode: 'live',
        group_name: groupOf(id),
        group_digest: digestOf(`group:${groupOf(id)}`),
        active: true,
      });
    }
    return new StockSite(site);
  }

  close(): Promise<void> {
    return this.site.close();
  }

  /**
   * Lets a run happen to a site without records, the end of all grace periods and of all ignorance
   * last.
   * @returns the records that were accepted, in the order of their arrival
   */
  async play(inputs: readonly Input[], run: Run): Promise<Input[]> {
    await this.startAgain();
    const accepted = new Map<number, Input>();
    const taken = new Set<string>();
    for (const index of run.arrivals) {
      const input = inputs[index];
      if (!input) continue;
      const answer = await this.accept(input);
      const again = taken.has(idOf(input));
      if (answer.outcome === 'accepted' && !again) accepted.set(answer.eventId, input);
      else if (answer.outcome !== (again ? 'duplicate' : 'stale')) {
        throw new Error(`${idOf(input)} was answered with ${JSON.stringify(answer)}`);
      }
      if (answer.outcome === 'accepted') taken.add(idOf(input));
    }
    await this.rows(RECORD_QUEUE_TABLE).update({ due_at: NOT_YET });
    await this.process([...accepted.keys()], run);
    for (const item of UNKNOWN_AT_FIRST) await this.learn(item);
    for (const connection of CONNECTIONS) await this.mapAll(connection);
    await this.endGraces();
    return [...accepted.values()];
  }

  /** By `item@location`. */
  async quantities(): Promise<Record<string, number>> {
    const levels = await this.levels();
    return Object.fromEntries(
      levels.map((level) => [`${level.item_id}@${level.location_id}`, Number(level.quantity)])
    );
  }

  levels(): Promise<LevelRow[]> {
    return this.rows(LEVELS_TABLE).select('*');
  }

  movements(): Promise<MovementRow[]> {
    return this.rows(MOVEMENTS_TABLE).select('*').orderBy('id');
  }

  explain(levelId: number) {
    return explainLevel(appOf(this.site.strapi), levelId);
  }

  rebuild() {
    return rebuildLevels(appOf(this.site.strapi));
  }

  private rows(tableName: string) {
    return this.site.connection(tableName);
  }

  private async startAgain(): Promise<void> {
    for (const name of [
      POS_EVENTS_TABLE,
      RECORD_QUEUE_TABLE,
      POS_WAITS_TABLE,
      MOVEMENTS_TABLE,
      LEVELS_TABLE,
      ITEMS_TABLE,
    ]) {
      await this.rows(name).delete();
    }
    this.known = new Set();
    this.mapped = new Set();
    for (const item of ITEMS) {
      if (!UNKNOWN_AT_FIRST.includes(item)) await this.insertItem(item);
    }
    for (const id of CONNECTIONS) {
      const only = onlyLocationOf(id);
      const locations = mapOf(only === null ? LOCATIONS : [only]);
      await this.rows(CONNECTIONS_TABLE).where({ id }).update({ locations });
      if (only === null) this.mapped.add(id);
    }
  }

  private async accept(input: Input): Promise<Acceptance> {
    const connection = (await this.rows(CONNECTIONS_TABLE)
      .where({ id: input.connection })
      .first()) as ConnectionRow;
    const receivedAtMs = Date.now();
    const body = Buffer.from(JSON.stringify(bodyOf(input)));
    const reading = readRecord(kindOf(input), body, receivedAtMs);
    if (!reading.ok) throw new Error(reading.issue.message);
    const submission = submissionOf(connection, reading.value, body, receivedAtMs);
    const [answer] = await acceptBatch(this.site.app, [submission]);
    if (!answer) throw new Error('A record has no answer.');
    return answer;
  }

  /** One after the other, but for some that become due together with the next. */
  private async process(ids: readonly number[], { queueSeed, chances }: Run): Promise<void> {
    const seeded = ids.map((id, seq) => ({ id, seed: queueSeed[seq] ?? 0 }));
    const queue = seeded.sort((a, b) => a.seed - b.seed);
    for (const [at, { id, seed }] of queue.entries()) {
      for (const chance of chances) if (chance.at === at) await this.happen(chance.what);
      await this.wake([id]);
      if (seed % 2 === 0) await this.drain();
    }
    await this.drain();
  }

  private happen(what: Chance['what']): Promise<void> {
    if (what === 'graces end') return this.endGraces();
    return 'learn' in what ? this.learn(what.learn) : this.mapAll(what.map);
  }

  private async insertItem(item: number): Promise<void> {
    this.known.add(item);
    const sku = skuOf(item);
    await this.rows(ITEMS_TABLE).insert({ id: item, sku, sku_digest: skuDigest(sku), low_at: 0 });
    for (const location of LOCATIONS) {
      const opening = openingOf(item, location);
      const place = { item_id: item, location_id: location };
      await this.rows(LEVELS_TABLE).insert({ ...place, opening, quantity: opening });
    }
  }

  private async learn(item: number): Promise<void> {
    if (this.known.has(item)) return;
    await this.insertItem(item);
    await wakeForItems(this.site.app, [{ sku: skuOf(item), gtin: null }]);
    await this.drain();
  }

  /** The owner maps what references of the connection are not mapped yet. */
  private async mapAll(id: number): Promise<void> {
    if (this.mapped.has(id)) return;
    this.mapped.add(id);
    const { app } = this.site;
    await this.rows(CONNECTIONS_TABLE)
      .where({ id })
      .update({ locations: mapOf(LOCATIONS) });
    await app.db.transaction((tx) => wakeConnection(tx, app, id));
    await this.drain();
  }

  private async endGraces(): Promise<void> {
    const processed = () =>
      this.rows(POS_EVENTS_TABLE).where({ kind: 'refund' }).whereNotNull('processed_at');
    await processed().update({ received_at: 0 });
    await this.wake((await processed().where({ state: 'held' }).pluck('id')) as number[]);
    await this.drain();
  }

  private async wake(ids: readonly number[]): Promise<void> {
    await this.site.app.db.transaction((tx) => this.store.bringForward(tx, ids, 'owner'));
  }

  /** Applies until nothing is due. */
  private async drain(): Promise<void> {
    const { app } = this.site;
    // A wake wakes once more after its commit. There is one connection to the database, and this
    // waits in its queue behind what began before.
    await app.db.transaction(async () => undefined);
    for (;;) {
      // The site's clock may be set back by some milliseconds, to that of its database.
      const now = this.store.now() + 1000;
      const due = [...(await this.store.dueTimes())].filter(([, dueAt]) => dueAt <= now);
      if (due.length === 0) return;
      const leases: LeasedRecord[] = [];
      for (const [group] of due) leases.push(...(await this.store.claim([{ group, limit: 200 }])));
      await applyBatch(app, leases);
    }
  }
}
