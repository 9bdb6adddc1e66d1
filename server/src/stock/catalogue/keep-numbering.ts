import type { Core } from '@strapi/strapi';
import { getOptions } from '../../config';
import { createDetached } from '../../database/connection';
import { errorText } from '../../runtime/text';
import { numberAll } from './numbering';

/** Numbers, once a minute, what no request for the catalogue has numbered: where records are applied. */
export const keepNumbering = (strapi: Core.Strapi): void => {
  if (!getOptions(strapi).pos.process) return;
  const detached = createDetached();
  strapi.cron.add({
    switchboardCatalogue: {
      task: () =>
        detached(async () => {
          try {
            await numberAll(strapi);
          } catch (error) {
            strapi.log.debug(
              `switchboard: changes of items were not numbered: ${errorText(error)}`
            );
          }
        }),
      options: { rule: '30 * * * * *' },
    },
  });
};
