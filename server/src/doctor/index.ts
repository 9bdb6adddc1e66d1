import type { Core } from '@strapi/strapi';
import { SITE_TABLE } from '../database/site-instance';
import type { Feature } from '../feature';
import { isOn } from '../parts';
import { errorText } from '../runtime/text';
import { clocks, sqlite, tables } from './checks/database';
import { queues, redis } from './checks/redis';
import { encryptionKey, environment, mcp, proxy } from './checks/site';
import { deliveries, posEvents } from './checks/work';
import { type Check, fail, type NamedResult } from './types';
import { type App, appOf } from '../app';

/** What `switchboard doctor` asks for (docs/operations.md#is-everything-in-order). */
export interface Doctor {
  /** What is known without the database. */
  examineSite(): Promise<NamedResult[]>;
  /** The rest, once the database is connected; nothing has to be bootstrapped. */
  examineDatabase(): Promise<NamedResult[]>;
}

/** One check that cannot be made says so, and the others are made all the same. */
const lookAt = async (app: App, { name, look }: Check): Promise<NamedResult | null> => {
  try {
    const result = await look(app);
    return result && { name, ...result };
  } catch (error) {
    return {
      name,
      ...fail(
        `could not be looked at: ${errorText(error)}`,
        'see the log of the site and the database'
      ),
    };
  }
};

const examine = async (app: App, checks: readonly Check[]): Promise<NamedResult[]> => {
  const results: NamedResult[] = [];
  for (const check of checks) {
    const result = await lookAt(app, check);
    if (result) results.push(result);
  }
  return results;
};

/** The command's half of the plugin. @param features all others, whose tables are looked for */
export const doctorOf = (features: readonly Feature[]): Feature => {
  const expected = (app: App): string[] => [
    SITE_TABLE,
    ...features
      .filter((feature) => isOn(feature, app.options.features))
      .flatMap((feature) => (feature.tables ?? []).map(({ tableName }) => tableName)),
  ];
  return {
    services: {
      doctor: ({ strapi }: { strapi: Core.Strapi }): Doctor => {
        const app = appOf(strapi);
        return {
          examineSite: () => examine(app, [encryptionKey, environment, proxy, mcp, redis]),
          examineDatabase: () =>
            examine(app, [clocks, tables(expected), sqlite, deliveries, posEvents, queues]),
        };
      },
    },
  };
};
