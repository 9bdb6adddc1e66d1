import type { Core } from '@strapi/strapi';
import type { ContentEvents } from '../../shared/contracts/entries';
import { access } from './access';
import { type App, appOf } from './app';
import { ineffective, misplaced } from './config';
import { parseOptions } from './config/schema';
import { crm } from './crm';
import { startCheckpoints, stopCheckpoints } from './database/checkpoints';
import { watchTransactions } from './database/transactions';
import { listenUntilClosed } from './database/written-rows';
import { doctorOf } from './doctor';
import { entries } from './entries';
import { answerAbsent, closeServer, refuseForms, watchRequests } from './http/server';
import { importsFeature } from './imports';
import { modules } from './modules';
import { observability } from './observability';
import { overview } from './overview';
import { createParts, isOn } from './parts';
import { persistenceOf } from './persistence';
import { pos } from './pos';
import type { Feature } from './feature';
import { stock } from './stock';
import { webhooks } from './webhooks';
import type { ContactImport, EmailService, EventsService } from './public';

const kept: readonly Feature[] = [
  modules,
  access,
  observability,
  webhooks,
  importsFeature,
  entries,
  crm,
  stock,
  pos,
  overview,
];

/** In the order of the arrows: a feature comes after the features it uses. */
const persisted: readonly Feature[] = [...kept, persistenceOf(kept)];
const features: readonly Feature[] = [...persisted, doctorOf(persisted)];

const { offer, ...parts } = createParts(features);

interface HostContext {
  strapi: Core.Strapi;
}

/** The features that the site has; options of others are ignored. */
const featuresOf = ({ options }: App): readonly Feature[] =>
  features.filter((feature) => isOn(feature, options.features));

export default {
  ...parts,
  /** The host merges `default` with the site's options, then validates. */
  config: {
    default: {},
    validator(options: unknown): void {
      offer(parseOptions(options).features);
    },
  },
  async register({ strapi }: HostContext): Promise<void> {
    watchTransactions(strapi);
    listenUntilClosed(strapi);
    const app = appOf(strapi);
    await app.prepare();
    // The panel offers them to a site's own types, whichever features there are.
    for (const name of ['address', 'values'])
      strapi.customFields.register({ name, plugin: 'switchboard', type: 'json' });
    const present = featuresOf(app);
    watchRequests(strapi);
    for (const feature of present) await feature.register?.(app);
    const absent = features.filter((feature) => !present.includes(feature));
    if (absent.length > 0) strapi.server.use(answerAbsent(app, present, absent));
    strapi.server.use(refuseForms(app));
  },
  async bootstrap({ strapi }: HostContext): Promise<void> {
    const app = appOf(strapi);
    const warnings = [
      ...misplaced(strapi),
      ...ineffective(strapi),
      ...((await app.db.sqliteWarnings()) ?? []),
    ];
    for (const warning of warnings) strapi.log.warn(`switchboard: ${warning}`);
    for (const feature of featuresOf(app)) await feature.bootstrap?.(app);
    await startCheckpoints(app);
  },
  async destroy({ strapi }: HostContext): Promise<void> {
    const app = appOf(strapi);
    const last = [...featuresOf(app)].reverse();
    // Side by side: what waits for receivers and what waits for clients has seconds each.
    await Promise.all([closeServer(strapi), ...last.map((feature) => feature.stop?.(app))]);
    for (const feature of last) await feature.destroy?.(app);
    await app.scheduler.close();
    await stopCheckpoints(app);
  },
};

/** For other plugins: the types of the hooks, of the payloads and of the services they may call. */
export type * from './hooks/types';
export type * from './public';
export type {
  Campaign,
  Company,
  Contact,
  Deal,
  DealStage,
  ImportIssue,
  ImportReport,
  Tag,
  Task,
} from '../../shared/contracts/crm';
export type {
  ChangedEntryEventData,
  ChangedMediaEventData,
  Entry,
  EntryEventData,
  MediaEventData,
  MediaFile,
} from '../../shared/contracts/entries';
export type { Delivery, Webhook } from '../../shared/contracts/webhooks';

/**
 * The `data` of events by their names. A plugin adds its own:
 * `declare module 'strapi-plugin-switchboard/strapi-server' { interface SwitchboardEvents { 'loyalty.earned': { points: number } } }`.
 */
// eslint-disable-next-line @typescript-eslint/no-empty-object-type -- to be augmented
export interface SwitchboardEvents extends ContentEvents {}

/** The plugin's public services, by the names for `strapi.service(uid)`. */
export interface SwitchboardServices {
  'plugin::switchboard.events': EventsService;
  'plugin::switchboard.email': EmailService;
  'plugin::switchboard.contact-import': ContactImport;
}
