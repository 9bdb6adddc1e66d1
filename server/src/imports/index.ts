import { Readable } from 'node:stream';
import { errors } from '@strapi/utils';
import type { ImportJob } from '../../../shared/contracts/imports';
import { type AdminAction, adminActionId } from '../../../shared/contracts/permissions';
import type { Feature, RouteConfig } from '../feature';
import type { ControllerFactory } from '../http/guarded-route';
import { idFromPath } from '../http/validation';
import { csvLine, noFormula } from '../runtime/text';
import { importRejectTable, importTable, readJob, rejectsOf } from './jobs';
import { leaveImportsUnread } from './upload';
import { appOf } from '../app';

/** Users who may import, or check the levels, may see the result. */
const ACTIONS: Readonly<Record<ImportJob['kind'], AdminAction>> = {
  contacts: 'crm.import',
  items: 'stock.import',
  levels: 'stock.manage',
};

const imports: ControllerFactory = ({ strapi }) => {
  const app = appOf(strapi);
  const jobOf = async (state: { userAbility?: { can(action: string): boolean } }, id: unknown) => {
    const found = await readJob(app, idFromPath(id, 'Import'));
    if (!state.userAbility?.can(adminActionId(ACTIONS[found.job.kind])))
      throw new errors.ForbiddenError();
    return found;
  };
  const unlessNumber = (cell: string): string => (/^-?\d+$/.test(cell) ? cell : noFormula(cell));
  return {
    async findOne(ctx) {
      const { job } = await jobOf(ctx.state, ctx.params.id);
      ctx.body = { data: job };
    },
    async rejects(ctx) {
      const { job, headings } = await jobOf(ctx.state, ctx.params.id);
      const { id, kind } = job;
      const isOfFile = kind !== 'levels';
      const lines = async function* () {
        yield csvLine([...(isOfFile ? ['line', 'error'] : []), ...headings.map(noFormula)]);
        for await (const { line, message, cells } of rejectsOf(app, id)) {
          // A file's own cells can be imported as they are here, once they are corrected.
          const own = cells.map(unlessNumber);
          yield csvLine(isOfFile ? [line, noFormula(message), ...own] : own);
        }
      };
      ctx.body = Readable.from(lines());
      ctx.type = 'text/csv; charset=utf-8';
      ctx.set(
        'Content-Disposition',
        `attachment; filename="${isOfFile ? `import-${id}-rejects` : `levels-${id}`}.csv"`
      );
    },
  };
};

/** Which action it takes depends on the import. */
const route = (path: string, action: string): RouteConfig => ({
  ...{ method: 'GET', path, handler: `imports.${action}` },
  config: { policies: ['admin::isAuthenticatedAdmin'] },
});

/** Files that are imported, and checks of the levels: how they get on, and what they list. */
export const importsFeature: Feature = {
  tables: [importTable, importRejectTable],
  controllers: { imports },
  routes: {
    admin: [route('/imports/:id', 'findOne'), route('/imports/:id/rejects', 'rejects')],
  },
  register(app) {
    app.strapi.server.use(leaveImportsUnread as Parameters<typeof app.strapi.server.use>[0]);
  },
};
