import { errors, z } from '@strapi/utils';
import { foreignInput, foreignText, offerTool } from '../http/assistant-tools';
import { LevelsService } from './levels-service';
import type { App } from '../app';

/** Levels of an item that are explained at once, and movements of each, the latest. */
const LEVELS = 10;
const MOVEMENTS = 20;

const input = z.object({
  sku: z.string().min(1).max(256),
  location: z.string().min(1).max(256).optional().describe('The id or the code of a location'),
  include_foreign_text: foreignInput,
});

const output = z.object({
  levels: z.array(
    z.object({
      sku: z.string(),
      location: z.string(),
      quantity: z.number(),
      last_counted_at: z.string().nullable(),
      movements: z.array(z.record(z.string(), z.unknown())),
      movements_in_all: z.number().int(),
    })
  ),
});

/** Tools for assistants about stock, for users who may see it. */
export const offerStockTools = (app: App): void => {
  offerTool(app, {
    name: 'switchboard_explain_stock_level',
    title: 'Explain a stock level',
    description:
      'Says how much of an item is where, when it was last counted, and which movements made it so: the newest first, each with its effect; its note only with include_foreign_text.',
    action: 'stock.read',
    input,
    output,
    async run({ sku, location, include_foreign_text: foreign }) {
      const levels = new LevelsService(app);
      const { data } = await levels.list({ sku, location, page: 1, per_page: LEVELS });
      if (data.length === 0) throw new errors.NotFoundError('Nothing is known of this item there.');
      const latest = { page: 1, per_page: MOVEMENTS };
      const explained = [];
      for (const level of data) {
        const { data: movements, meta } = await levels.movements(level.id, latest);
        explained.push({
          sku: level.sku,
          location: level.location.code,
          quantity: level.quantity,
          last_counted_at: level.last_counted_at,
          movements: movements.map(({ note, ...one }) => ({
            ...one,
            note: note !== null && foreign ? foreignText(note) : null,
          })),
          movements_in_all: meta.pagination.total,
        });
      }
      return { levels: explained };
    },
  });
};
