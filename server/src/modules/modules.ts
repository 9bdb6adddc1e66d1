import type { Knex } from 'knex';
import { MODULE_IDS, type Module, type ModuleId } from '../../../shared/contracts/modules';
import type { App } from '../app';
import type { Db } from '../database/db';

const NAMES: Readonly<Record<ModuleId, string>> = {
  webhooks: 'Webhooks',
  companies: 'Companies',
  sales_pipeline: 'Sales pipeline',
  email_marketing: 'Email marketing',
  email_conversations: 'Email conversations',
};

export const moduleName = (id: ModuleId): string => NAMES[id];

export type Switches = Partial<Record<ModuleId, boolean>>;

const isOn = (switches: Switches, id: ModuleId): boolean => switches[id] ?? true;

const modulesOn = (switches: Switches): ReadonlySet<ModuleId> =>
  new Set(MODULE_IDS.filter((id) => isOn(switches, id)));

/** The switches as a column of a query, to save a round trip; `enabledModules` reads it. */
export const storedModules = (db: Db): Knex.QueryBuilder =>
  db
    .table('strapi_core_store_settings')
    .select('value')
    .where({ key: 'plugin_switchboard_modules' })
    .limit(1);

export const enabledModules = (stored: string | null | undefined): ReadonlySet<ModuleId> =>
  modulesOn(stored ? ((JSON.parse(stored) as Switches | null) ?? {}) : {});

/** Called for a change of modules: in its transaction, after the commit, and before it is answered. */
interface ModulesListener {
  changing(): Promise<void>;
  changed(): void;
  answering(): Promise<void>;
}

/** Which optional modules are on. Read from the database each time: another node may have switched. */
export class Modules {
  private listener: ModulesListener | null = null;

  constructor(private readonly site: Pick<App, 'strapi' | 'db' | 'options'>) {}

  /** Without the CRM there is nothing that its modules could switch. */
  get offered(): readonly ModuleId[] {
    return MODULE_IDS.filter((id) => id === 'webhooks' || this.site.options.features.crm);
  }

  async isEnabled(id: ModuleId): Promise<boolean> {
    return isOn(await this.read(), id);
  }

  async enabled(): Promise<ReadonlySet<ModuleId>> {
    return modulesOn(await this.read());
  }

  async list(): Promise<Module[]> {
    return this.toList(await this.read());
  }

  /** Switches modules; those that are not named stay as they are. */
  async set(changes: Switches): Promise<Module[]> {
    const modules = await this.site.db.retrying(async (tx) => {
      const switches = { ...(await this.read()), ...changes };
      await this.store().set({ value: switches });
      await this.listener?.changing();
      tx.onCommit(() => this.listener?.changed());
      return this.toList(switches);
    });
    await this.listener?.answering();
    return modules;
  }

  /** Tells `listener` of the switches of this process. */
  onChange(listener: ModulesListener): void {
    this.listener = listener;
  }

  private store() {
    return this.site.strapi.store({ type: 'plugin', name: 'switchboard', key: 'modules' });
  }

  private async read(): Promise<Switches> {
    return ((await this.store().get({})) as Switches | null) ?? {};
  }

  private toList(switches: Switches): Module[] {
    return this.offered.map((id) => ({ id, name: NAMES[id], enabled: isOn(switches, id) }));
  }
}
