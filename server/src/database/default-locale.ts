import type { Core, UID } from '@strapi/strapi';

/** Whether a document of a type has a row for each of its languages. */
export const isLocalized = (strapi: Core.Strapi, uid: string): boolean => {
  const { pluginOptions } = strapi.contentTypes[uid as UID.ContentType] as {
    pluginOptions?: { i18n?: { localized?: boolean } };
  };
  return pluginOptions?.i18n?.localized === true && Boolean(strapi.plugins.i18n);
};

/** The site's default language, for types that are localized. */
export const defaultLocale = async (strapi: Core.Strapi): Promise<string> => {
  const locales = strapi.plugin('i18n').service('locales') as {
    getDefaultLocale(): Promise<string>;
  };
  return locales.getDefaultLocale();
};
