import type { Core } from '@strapi/strapi';
import { FEATURE_IDS, type FeatureId } from '../../../shared/contracts/features';
import { getOptions } from '.';

/** Options that mean nothing without a feature. */
const NEEDED_BY: Readonly<Record<FeatureId, readonly string[]>> = {
  crm: ['sources', 'forms', 'email'],
  pos: ['pos', 'stock'],
};

/** Of the sources, those that need no CRM. */
const ALWAYS = new Set(['entries', 'media']);

const isGiven = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  Object.keys(value).some((name) => !ALWAYS.has(name));

/** One line about each option that was given and has no effect. */
export const ineffective = (strapi: Core.Strapi): string[] => {
  const given = strapi.config.get('plugin::switchboard') as Record<string, unknown>;
  const { features } = getOptions(strapi);
  return FEATURE_IDS.filter((id) => !features[id]).flatMap((id) =>
    NEEDED_BY[id]
      .filter((name) => isGiven(given[name]))
      .map((name) => `the option ${name} has no effect, because features.${id} is false`)
  );
};
