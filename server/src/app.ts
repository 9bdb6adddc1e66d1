import type { Core } from '@strapi/strapi';
import { type Options, readOptions } from './config';
import { createDetached, type Detached } from './database/connection';
import type { DatabaseClock, Site } from './database/site';
import { Database } from './database/db';
import { Hooks } from './hooks';
import { Modules } from './modules/modules';
import { createScheduler } from './scheduling';
import type { Scheduler } from './scheduling/types';

/** The site, as the plugin's features see it. */
export class App {
  readonly options: Options;
  readonly db: Database;
  readonly clock: DatabaseClock;
  readonly site: Site;
  readonly hooks: Hooks;
  readonly modules: Modules;
  /** Runs work outside of any request and transaction; the app is made before there are any. */
  readonly detached: Detached = createDetached();
  private readonly parts = new Map<unknown, unknown>();
  private made: Scheduler | undefined;

  constructor(readonly strapi: Core.Strapi) {
    this.options = readOptions(strapi);
    this.db = new Database(strapi);
    this.clock = this.db.clock;
    this.site = this.db.site;
    this.hooks = new Hooks(strapi);
    this.modules = new Modules(this);
  }

  get log(): Core.Strapi['log'] {
    return this.strapi.log;
  }

  get scheduler(): Scheduler {
    if (!this.made) throw new Error('The plugin switchboard is not running.');
    return this.made;
  }

  /** The result of `make` for this app: created at the first use, and once. */
  part<T>(make: (app: App) => T): T {
    if (!this.parts.has(make)) this.parts.set(make, make(this));
    return this.parts.get(make) as T;
  }

  /** Makes the scheduler. To be called in `register`, outside any request. */
  async prepare(): Promise<void> {
    this.made = await createScheduler(this);
  }
}

/** A place of an app for one thing that is set later, or exchanged. */
export interface Slot<T> {
  value?: T;
}

const NAME = 'plugin::switchboard.app';

/** The app of a site: made at the first use, which may be another plugin's before this one is registered. */
export const appOf = (strapi: Core.Strapi): App => {
  if (!strapi.has(NAME)) strapi.add(NAME, new App(strapi));
  return strapi.get(NAME) as unknown as App;
};

/** Makes the host create a service of a class, at its first use. */
export const serviceOf =
  <Service>(Class: new (app: App) => Service) =>
  ({ strapi }: { strapi: Core.Strapi }): Service =>
    new Class(appOf(strapi));
