import { adminApi } from '@strapi/strapi/admin';

export const api = adminApi.enhanceEndpoints({
  addTagTypes: [
    'SwitchboardWebhook',
    'SwitchboardDelivery',
    'SwitchboardHealth',
    'SwitchboardModules',
    'SwitchboardPasswords',
    'SwitchboardConnection',
    'SwitchboardEvent',
    'SwitchboardStock',
  ],
});

/** Lists that a person made by hand are short: they come whole, in pages of this size. */
export const PAGE_MAX = 100;

/** `?a=1&b=2`, without what is empty. */
export const queryString = (params: Record<string, string | number | undefined>): string => {
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text === '' ? '' : `?${text}`;
};
