import { Readable } from 'node:stream';
import { errors } from '@strapi/utils';
import type { ImportJob } from '../../../shared/contracts/imports';
import type { AdminAction } from '../../../shared/contracts/permissions';
import { adminApi } from '../access/admin-actions';
import { isAllowed } from '../access/current-admin-user';
import type { Feature } from '../feature';
import { endpoint, type EndpointRequest } from '../http/endpoint';
import { csvLine, noFormula } from '../runtime/text';
import { importRejectTable, importTable, readJob, rejectsOf } from './jobs';
import { leaveImportsUnread } from './upload';

/** Users who may import, or check the levels, may see the result. */
const ACTIONS: Readonly<Record<ImportJob['kind'], AdminAction>> = {
  contacts: 'crm.import',
  items: 'stock.import',
  levels: 'stock.manage',
};

const jobOf = async ({ app, ctx, id }: EndpointRequest) => {
  const found = await readJob(app, id('Import'));
  if (!isAllowed(ctx, ACTIONS[found.job.kind])) throw new errors.ForbiddenError();
  return found;
};

const unlessNumber = (cell: string): string => (/^-?\d+$/.test(cell) ? cell : noFormula(cell));

/** Which action a route takes depends on the import. */
const api = adminApi({
  imports: {
    findOne: endpoint('GET /imports/:id', {}, async (request) => (await jobOf(request)).job),
    rejects: endpoint('GET /imports/:id/rejects', { whole: true }, async (request) => {
      const { job, headings } = await jobOf(request);
      const { id, kind } = job;
      const isOfFile = kind !== 'levels';
      const lines = async function* () {
        yield csvLine([...(isOfFile ? ['line', 'error'] : []), ...headings.map(noFormula)]);
        for await (const { line, message, cells } of rejectsOf(request.app, id)) {
          // A file's own cells can be imported as they are here, once they are corrected.
          const own = cells.map(unlessNumber);
          yield csvLine(isOfFile ? [line, noFormula(message), ...own] : own);
        }
      };
      const name = isOfFile ? `import-${id}-rejects` : `levels-${id}`;
      request.ctx.type = 'text/csv; charset=utf-8';
      request.ctx.set('Content-Disposition', `attachment; filename="${name}.csv"`);
      return Readable.from(lines());
    }),
  },
});

/** Files that are imported, and checks of the levels: how they get on, and what they list. */
export const importsFeature: Feature = {
  tables: [importTable, importRejectTable],
  controllers: api.controllers,
  routes: { admin: api.routes },
  register(app) {
    app.strapi.server.use(leaveImportsUnread);
  },
};
