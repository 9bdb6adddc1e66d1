import { z } from '@strapi/utils';
import type { ModuleId } from '../../../../shared/contracts/modules';
import { requireModule } from '../../modules';
import type { RouteConfig } from '../../feature';
import { jsonBody, queryOf } from '../../http/guarded-route';
import { pageOf } from '../../webhooks/managing/outputs';
import { SHAPES } from '../shapes';
import type { Kind } from '../rules/types';
import { INPUTS } from './inputs';

const id = z.string();

const routesOf = (kind: Kind, name: string, module?: ModuleId): RouteConfig[] => {
  // One object a route: the host writes each route's scope into it.
  const config = () => (module ? { policies: [requireModule(module)] } : {});
  const { create, update, query } = INPUTS[kind];
  const one = { params: { id } };
  const response = SHAPES[kind];
  return [
    {
      method: 'GET',
      path: `/${name}`,
      handler: `${name}.find`,
      request: queryOf(query),
      response: pageOf(response),
      config: config(),
    },
    {
      method: 'POST',
      path: `/${name}`,
      handler: `${name}.create`,
      request: jsonBody(create),
      response,
      config: config(),
    },
    {
      method: 'GET',
      path: `/${name}/:id`,
      handler: `${name}.findOne`,
      request: one,
      response,
      config: config(),
    },
    ...(['PUT', 'PATCH'] as const).map((method) => ({
      method,
      path: `/${name}/:id`,
      handler: `${name}.update`,
      request: { ...one, ...jsonBody(update) },
      response,
      config: config(),
    })),
    {
      method: 'DELETE',
      path: `/${name}/:id`,
      handler: `${name}.delete`,
      request: one,
      response: z.null(),
      config: config(),
    },
  ];
};

const tagging = { params: { id, tag_id: id } };

/** `/api/fw-crm/v1/{contacts,tags,companies,deals,deal-stages,tasks,campaigns}`; docs/management-api.md#crm-records. */
export const crmRoutes: RouteConfig[] = [
  ...routesOf('contact', 'contacts'),
  {
    method: 'POST',
    path: '/contacts/:id/tags/:tag_id',
    handler: 'contacts.addTag',
    request: tagging,
    response: SHAPES.contact,
    config: {},
  },
  {
    method: 'DELETE',
    path: '/contacts/:id/tags/:tag_id',
    handler: 'contacts.removeTag',
    request: tagging,
    response: z.null(),
    config: {},
  },
  ...routesOf('tag', 'tags'),
  ...routesOf('company', 'companies', 'companies'),
  ...routesOf('deal', 'deals', 'sales_pipeline'),
  ...routesOf('deal-stage', 'deal-stages', 'sales_pipeline'),
  ...routesOf('task', 'tasks'),
  ...routesOf('campaign', 'campaigns', 'email_marketing'),
];
