import type { Core } from '@strapi/strapi';
import { type Options, readOptions } from './config';
import type { DatabaseClock, Site } from './database/site';
import { Database } from './database/db';
import { Hooks } from './hooks';
import { Modules } from './modules/modules';
import { createScheduler } from './scheduling';
import type { Scheduler } from './scheduling/types';

/** The site, as the plugin's features see it. */
export interface App {
  /** The host itself. */
  readonly strapi: Core.Strapi;
  readonly log: Core.Strapi['log'];
  readonly options: Options;
  readonly db: Database;
  readonly clock: DatabaseClock;
  readonly site: Site;
  readonly hooks: Hooks;
  readonly modules: Modules;
  readonly scheduler: Scheduler;
  /** The result of `make` for this app: created at the first use, and once. */
  part<T>(make: (app: App) => T): T;
  /** Makes the scheduler. To be called in `register`, outside any request. */
  prepare(): Promise<void>;
}

/** A place of an app for one thing that is set later, or exchanged. */
export interface Slot<T> {
  value?: T;
}

const NAME = 'plugin::switchboard.app';

/** The host's container for things of the site. */
interface Container {
  has(name: string): boolean;
  add(name: string, app: App): void;
  get(name: string): App;
}

const makeApp = (strapi: Core.Strapi): App => {
  const options = readOptions(strapi);
  const db = new Database(strapi);
  const parts = new Map<unknown, unknown>();
  let scheduler: Scheduler | undefined;
  const app: App = {
    strapi,
    get log() {
      return strapi.log;
    },
    options,
    db,
    clock: db.clock,
    site: db.site,
    hooks: new Hooks(strapi),
    modules: new Modules({ strapi, db, options }),
    get scheduler() {
      if (!scheduler) throw new Error('The plugin switchboard is not running.');
      return scheduler;
    },
    part: (make) => {
      const known = parts.get(make) as ReturnType<typeof make> | undefined;
      if (known !== undefined) return known;
      const made = make(app);
      parts.set(make, made);
      return made;
    },
    async prepare() {
      scheduler = await createScheduler(app);
    },
  };
  return app;
};

/** The app of a site: made at the first use, which may be another plugin's before this one is registered. */
export const appOf = (strapi: Core.Strapi): App => {
  const container = strapi as unknown as Container;
  if (!container.has(NAME)) container.add(NAME, makeApp(strapi));
  return container.get(NAME);
};

/** Makes the host create a service of a class, at its first use. */
export const serviceOf =
  <Service>(Class: new (app: App) => Service) =>
  ({ strapi }: { strapi: Core.Strapi }): Service =>
    new Class(appOf(strapi));
