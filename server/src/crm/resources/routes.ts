import { z } from '@strapi/utils';
import type { Page } from '../../../../shared/contracts/webhooks';
import { controllersOf, endpoint, type Endpoints } from '../../http/endpoint';
import { offsetOf, type PageRequest, paginationMeta } from '../../http/pagination';
import { parseInput } from '../../http/validation';
import { contentRoutes } from '../../modules';
import { pageOf } from '../../webhooks/managing/outputs';
import { KIND_DEFINITIONS } from '../mapping/kinds';
import { getSource } from '../mapping/sources';
import { type Kind, KINDS } from '../rules';
import { createTag, crmRecords, tagsOfContact } from './crm-records';
import { INPUTS, SHAPES } from './schemas';
import type { App } from '../../app';

type Query = PageRequest & Record<string, unknown>;

/** A site's own type may have statuses of its own, which the host validates. */
const inputFor = (app: App, kind: Kind, action: 'create' | 'update', body: unknown) => {
  if (getSource(app, kind).own) return parseInput(INPUTS[kind][action], body);
  const { status, ...rest } = parseInput(z.record(z.string(), z.unknown()), body);
  const input = parseInput(INPUTS[kind][action], rest);
  return status === undefined ? input : { ...input, status };
};

const list = async (app: App, kind: Kind, query: Query): Promise<Page<unknown>> => {
  if (kind !== 'tag' || query.contact_id === undefined) return crmRecords(app, kind).list(query);
  const all = await tagsOfContact(app, String(query.contact_id));
  const data = all.slice(offsetOf(query), offsetOf(query) + query.per_page);
  return { data, meta: paginationMeta(query, all.length) };
};

const id = z.string();
const tagging = { params: { id, tag_id: id }, response: SHAPES.contact };
const untagging = { ...tagging, response: z.null() };

const resource = (kind: Kind) => {
  const { create, update, query } = INPUTS[kind];
  const path = `/${KIND_DEFINITIONS[kind].plural}`;
  const response = SHAPES[kind];
  const one = { params: { id }, response };
  const updating = (method: 'PUT' | 'PATCH') =>
    endpoint(`${method} ${path}/:id`, { ...one, body: update }, async ({ app, ctx }) => {
      const records = crmRecords(app, kind);
      await records.get(ctx.params.id);
      return records.update(ctx.params.id, inputFor(app, kind, 'update', ctx.request.body));
    });
  return {
    find: endpoint(`GET ${path}`, { query, response: pageOf(response), whole: true }, (request) =>
      list(request.app, kind, request.query() as Query)
    ),
    create: endpoint(`POST ${path}`, { body: create, response, status: 201 }, ({ app, ctx }) => {
      const input = inputFor(app, kind, 'create', ctx.request.body);
      return kind === 'tag' ? createTag(app, input) : crmRecords(app, kind).create(input);
    }),
    findOne: endpoint(`GET ${path}/:id`, one, ({ app, ctx }) =>
      crmRecords(app, kind).get(ctx.params.id)
    ),
    update: [updating('PUT'), updating('PATCH')],
    delete: endpoint(`DELETE ${path}/:id`, { ...one, response: z.null() }, ({ app, ctx }) =>
      crmRecords(app, kind).remove(ctx.params.id)
    ),
    ...(kind === 'contact' && {
      addTag: endpoint(`POST ${path}/:id/tags/:tag_id`, tagging, ({ app, ctx }) =>
        crmRecords(app, kind).changeTag(ctx.params.id, ctx.params.tag_id, 'connect')
      ),
      removeTag: endpoint(`DELETE ${path}/:id/tags/:tag_id`, untagging, async ({ app, ctx }) => {
        await crmRecords(app, kind).changeTag(ctx.params.id, ctx.params.tag_id, 'disconnect');
      }),
    }),
  };
};

const tableOf = (kind: Kind): Endpoints => ({ [KIND_DEFINITIONS[kind].plural]: resource(kind) });

/** `/api/fw-crm/v1/{contacts,tags,companies,deals,deal-stages,tasks,campaigns}`; docs/management-api.md#crm-records. */
export const crmRoutes = KINDS.flatMap((kind) =>
  contentRoutes([tableOf(kind)], KIND_DEFINITIONS[kind].module)
);

export const controllers = controllersOf(KINDS.map(tableOf), (value) => value);
