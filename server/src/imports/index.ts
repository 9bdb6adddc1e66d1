import { errors } from '@strapi/utils';
import { Readable } from 'node:stream';
import { type AdminAction, adminActionId } from '../../../shared/contracts/permissions';
import type { Feature } from '../feature';
import type { ControllerFactory } from '../http/guarded-route';
import { idFromPath } from '../http/validation';
import { csvLine, noFormula } from '../runtime/text';
import {
  headingsOf,
  type ImportKind,
  importRejectTable,
  importTable,
  readJob,
  rejectsOf,
} from './jobs';
import { leaveImportsUnread } from './upload';
import { appOf } from '../app';

/** Who may import, or check the levels, may see what became of it. */
const ACTIONS: Readonly<Record<ImportKind, AdminAction>> = {
  contacts: 'crm.import',
  items: 'stock.import',
  levels: 'stock.manage',
};

/** Which action it takes depends on the import. */
const SIGNED_IN = ['admin::isAuthenticatedAdmin'];

const imports: ControllerFactory = ({ strapi }) => {
  const app = appOf(strapi);
  const jobOf = async (state: { userAbility?: { can(action: string): boolean } }, id: unknown) => {
    const job = await readJob(app, idFromPath(id, 'Import'));
    if (!state.userAbility?.can(adminActionId(ACTIONS[job.kind])))
      throw new errors.ForbiddenError();
    return job;
  };
  const unlessNumber = (cell: string): string => (/^-?\d+$/.test(cell) ? cell : noFormula(cell));
  return {
    async findOne(ctx) {
      ctx.body = { data: await jobOf(ctx.state, ctx.params.id) };
    },
    async rejects(ctx) {
      const { id, kind } = await jobOf(ctx.state, ctx.params.id);
      const isOfFile = kind !== 'levels';
      const headings = await headingsOf(app, id);
      const lines = async function* () {
        yield csvLine([...(isOfFile ? ['line', 'error'] : []), ...headings.map(noFormula)]);
        for await (const { line, message, cells } of rejectsOf(app, id)) {
          // A file's own cells can be imported as they are here, once they are mended.
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

/** Files that are imported, and checks of the levels: how they get on, and what they list. */
export const importsFeature: Feature = {
  tables: [importTable, importRejectTable],
  controllers: { imports },
  routes: {
    admin: [
      {
        method: 'GET',
        path: '/imports/:id',
        handler: 'imports.findOne',
        config: { policies: SIGNED_IN },
      },
      {
        method: 'GET',
        path: '/imports/:id/rejects',
        handler: 'imports.rejects',
        config: { policies: SIGNED_IN },
      },
    ],
  },
  register(app) {
    app.strapi.server.use(leaveImportsUnread as Parameters<typeof app.strapi.server.use>[0]);
  },
};
