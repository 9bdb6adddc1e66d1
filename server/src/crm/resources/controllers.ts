import { z } from '@strapi/utils';
import type { ControllerFactory } from '../../http/guarded-route';
import { offsetOf, type PageRequest, paginationMeta } from '../../http/pagination';
import { parseInput } from '../../http/validation';
import type { Kind } from '../rules/types';
import { getSource } from '../mapping/registry';
import { changeTag, crmRecords, tagsOfContact } from './crm-records';
import { createTag } from './create-tag';
import { INPUTS } from './inputs';
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
        ctx.body = await records().create(input);
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
      const { id, tag_id: tagId } = ctx.params as Record<string, string>;
      ctx.body = await changeTag(app, String(id), String(tagId), 'connect');
    },
    async removeTag(ctx) {
      const { id, tag_id: tagId } = ctx.params as Record<string, string>;
      await changeTag(app, String(id), String(tagId), 'disconnect');
      ctx.status = 204;
    },
  };
};

const tags: ControllerFactory = ({ strapi }) => {
  const app = appOf(strapi);
  const base = resource('tag')({ strapi });
  return {
    ...base,
    async find(ctx) {
      const query = parseInput(INPUTS.tag.query, ctx.query) as Query & { contact_id?: string };
      if (query.contact_id === undefined) {
        await base.find?.(ctx);
        return;
      }
      const all = await tagsOfContact(app, query.contact_id);
      const start = offsetOf(query);
      ctx.body = {
        data: all.slice(start, start + query.per_page),
        meta: paginationMeta(query, all.length),
      };
    },
    async create(ctx) {
      const input = inputFor(app, 'tag', 'create', ctx.request.body);
      ctx.body = await createTag(app, input);
      ctx.status = 201;
    },
  };
};

export const controllers: Record<string, ControllerFactory> = {
  contacts,
  tags,
  companies: resource('company'),
  deals: resource('deal'),
  'deal-stages': resource('deal-stage'),
  tasks: resource('task'),
  campaigns: resource('campaign'),
};
