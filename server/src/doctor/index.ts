import type { Core } from '@strapi/strapi';
import { getOptions } from '../config';
import { SITE_TABLE } from '../database/site-instance';
import type { Feature } from '../feature';
import { isOn } from '../parts';
import { errorText } from '../runtime/text';
import { clocks, sqlite, tables } from './checks/database';
import { queues, redis } from './checks/redis';
import { encryptionKey, environment, mcp, proxy } from './checks/site';
import { deliveries, posEvents } from './checks/work';
import { type Check, fail, type NamedResult } from './types';

/** What `switchboard doctor` asks for (docs/operations.md#is-everything-in-order). */
export interface Doctor {
  /** What is known without the database. */
  examineSite(): Promise<NamedResult[]>;
  /** The rest, once the database is connected; nothing has to be bootstrapped. */
  examineDatabase(): Promise<NamedResult[]>;
}

/** One check that cannot be made says so, and the others are made all the same. */
const lookAt = async (strapi: Core.Strapi, { name, look }: Check): Promise<NamedResult | null> => {
  try {
    const result = await look(strapi);
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

const examine = async (strapi: Core.Strapi, checks: readonly Check[]): Promise<NamedResult[]> => {
  const results: NamedResult[] = [];
  for (const check of checks) {
    const result = await lookAt(strapi, check);
    if (result) results.push(result);
  }
  return results;
};

/** The command's half of the plugin. @param features all others, whose tables are looked for */
export const doctorOf = (features: readonly Feature[]): Feature => {
  const expected = (strapi: Core.Strapi): string[] => [
    SITE_TABLE,
    ...features
      .filter((feature) => isOn(feature, getOptions(strapi).features))
      .flatMap((feature) => (feature.tables ?? []).map(({ tableName }) => tableName)),
  ];
  return {
    services: {
      doctor: ({ strapi }: { strapi: Core.Strapi }): Doctor => ({
        examineSite: () => examine(strapi, [encryptionKey, environment, proxy, mcp, redis]),
        examineDatabase: () =>
          examine(strapi, [clocks, tables(expected), sqlite, deliveries, posEvents, queues]),
      }),
    },
  };
};
