import { z } from '@strapi/utils';
import type { RouteConfig } from '../../feature';
import { type ControllerFactory, jsonBody, queryOf } from '../../http/guarded-route';
import { offsetOf, type PageRequest, paginationMeta } from '../../http/pagination';
import { parseInput } from '../../http/validation';
import { requireModule } from '../../modules';
import { pageOf } from '../../webhooks/managing/outputs';
import { KIND_DEFINITIONS } from '../mapping/kinds';
import { getSource } from '../mapping/sources';
import { type Kind, KINDS } from '../rules';
import { createTag, crmRecords, tagsOfContact } from './crm-records';
import { INPUTS, SHAPES } from './schemas';
import { type App, appOf } from '../../app';

type Query = PageRequest & Record<string, unknown>;

/** A site's own type may have statuses of its own, which the host validates. */
const inputFor = (app: App, kind: Kind, action: 'create' | 'update', body: unknown) => {
  if (getSource(app, kind).own) return parseInput(INPUTS[kind][action], body);
  const { status, ...rest } = parseInput(z.record(z.string(), z.unknown()), body);
  const input = parseInput(INPUTS[kind][action], rest);
  return status === undefined ? input : { ...input, status };
};

const resource =
  (kind: Kind): ControllerFactory =>
  ({ strapi }) => {
    const app = appOf(strapi);
    const records = () => crmRecords(app, kind);
    return {
      async find(ctx) {
        ctx.body = await records().list(parseInput(INPUTS[kind].query, ctx.query) as Query);
      },
      async findOne(ctx) {
        ctx.body = await records().get(String(ctx.params.id));
      },
      async create(ctx) {
        const input = inputFor(app, kind, 'create', ctx.request.body);
        ctx.body = await (kind === 'tag' ? createTag(app, input) : records().create(input));
        ctx.status = 201;
      },
      async update(ctx) {
        await records().get(String(ctx.params.id));
        const input = inputFor(app, kind, 'update', ctx.request.body);
        ctx.body = await records().update(String(ctx.params.id), input);
      },
      async delete(ctx) {
        await records().remove(String(ctx.params.id));
        ctx.status = 204;
      },
    };
  };

const contacts: ControllerFactory = ({ strapi }) => {
  const app = appOf(strapi);
  return {
    ...resource('contact')({ strapi }),
    async addTag(ctx) {
      ctx.body = await crmRecords(app, 'contact').changeTag(
        ctx.params.id,
        ctx.params.tag_id,
        'connect'
      );
    },
    async removeTag(ctx) {
      await crmRecords(app, 'contact').changeTag(ctx.params.id, ctx.params.tag_id, 'disconnect');
      ctx.status = 204;
    },
  };
};

const tags: ControllerFactory = ({ strapi }) => {
  const app = appOf(strapi);
  const { find, ...others } = resource('tag')({ strapi });
  return {
    ...others,
    async find(ctx) {
      const query = parseInput(INPUTS.tag.query, ctx.query) as Query & { contact_id?: string };
      if (query.contact_id === undefined) {
        await find?.(ctx);
        return;
      }
      const all = await tagsOfContact(app, query.contact_id);
      const start = offsetOf(query);
      ctx.body = {
        data: all.slice(start, start + query.per_page),
        meta: paginationMeta(query, all.length),
      };
    },
  };
};

export const controllers: Record<string, ControllerFactory> = {
  ...Object.fromEntries(KINDS.map((kind) => [KIND_DEFINITIONS[kind].plural, resource(kind)])),
  contacts,
  tags,
};

const id = z.string();

const routesOf = (kind: Kind): RouteConfig[] => {
  const { plural, module } = KIND_DEFINITIONS[kind];
  const { create, update, query } = INPUTS[kind];
  const one = { params: { id } };
  const response = SHAPES[kind];
  const route = (
    method: RouteConfig['method'],
    action: string,
    said: Pick<RouteConfig, 'request' | 'response'>
  ): RouteConfig => ({
    method,
    path: `/${plural}${said.request?.params ? '/:id' : ''}`,
    handler: `${plural}.${action}`,
    ...said,
    // One object a route: the host writes each route's scope into it.
    config: module ? { policies: [requireModule(module)] } : {},
  });
  return [
    route('GET', 'find', { request: queryOf(query), response: pageOf(response) }),
    route('POST', 'create', { request: jsonBody(create), response }),
    route('GET', 'findOne', { request: one, response }),
    route('PUT', 'update', { request: { ...one, ...jsonBody(update) }, response }),
    route('PATCH', 'update', { request: { ...one, ...jsonBody(update) }, response }),
    route('DELETE', 'delete', { request: one, response: z.null() }),
  ];
};

const tagging = (
  method: RouteConfig['method'],
  action: string,
  response: z.ZodType
): RouteConfig => ({
  method,
  path: '/contacts/:id/tags/:tag_id',
  handler: `contacts.${action}`,
  request: { params: { id, tag_id: id } },
  response,
  config: {},
});

/** `/api/fw-crm/v1/{contacts,tags,companies,deals,deal-stages,tasks,campaigns}`; docs/management-api.md#crm-records. */
export const crmRoutes: RouteConfig[] = [
  ...routesOf('contact'),
  tagging('POST', 'addTag', SHAPES.contact),
  tagging('DELETE', 'removeTag', z.null()),
  ...KINDS.filter((kind) => kind !== 'contact').flatMap(routesOf),
];
