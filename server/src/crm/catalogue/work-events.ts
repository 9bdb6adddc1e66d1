import { z } from '@strapi/utils';
import { defineGroup } from './define';
import {
  closedDealExample,
  companyExample,
  dealExample,
  doneTaskExample,
  taskExample,
} from './examples';
import { companyShape, dealShape, taskShape } from '../shapes';

export const taskEvents = defineGroup('Tasks', undefined, {
  'task.created': {
    label: 'Task created',
    description: 'A task, call or meeting is added.',
    data: taskShape,
    example: taskExample,
  },
  'task.completed': {
    label: 'Task completed',
    description: 'A task, call or meeting is done; `outcome` says how it went.',
    data: taskShape,
    example: doneTaskExample,
  },
});

export const companyEvents = defineGroup('Companies', 'companies', {
  'company.created': {
    label: 'Company created',
    description: 'A company is added.',
    data: companyShape,
    example: companyExample,
  },
  'company.updated': {
    label: 'Company updated',
    description: 'Details of a company change.',
    data: companyShape,
    example: companyExample,
  },
  'company.deleted': {
    label: 'Company deleted',
    description: 'A company is deleted for good; `data` is the company as it was.',
    data: companyShape,
    example: companyExample,
  },
});

const stage = z.union([z.string(), z.number()]).nullable();

export const dealEvents = defineGroup('Deals', 'sales_pipeline', {
  'deal.created': {
    label: 'Deal created',
    description: 'A deal is added.',
    data: dealShape,
    example: dealExample,
  },
  'deal.updated': {
    label: 'Deal updated',
    description: 'A deal is changed. `changed` names the keys that differ.',
    data: dealShape.extend({ changed: z.array(z.string()).min(1) }),
    example: { ...dealExample, changed: ['value'] },
  },
  'deal.stage_changed': {
    label: 'Deal moved to another stage',
    description: 'A deal moves stage; sent beside `deal.updated`.',
    data: z.object({ deal: dealShape, from_stage_id: stage, to_stage_id: stage }),
    example: {
      deal: dealExample,
      from_stage_id: 's0a3c6e9g2i5k8m1o4q7s0uw',
      to_stage_id: dealExample.stage_id,
    },
  },
  'deal.won': {
    label: 'Deal won',
    description: 'A deal is closed as won.',
    data: dealShape,
    example: closedDealExample('won'),
  },
  'deal.lost': {
    label: 'Deal lost',
    description: 'A deal is closed as lost; `reason` says why.',
    data: dealShape.extend({ reason: z.string().nullable() }),
    example: { ...closedDealExample('lost'), reason: 'Budget was cut' },
  },
  'deal.deleted': {
    label: 'Deal deleted',
    description: 'A deal is deleted for good. Moving it to the bin is an update.',
    data: z.object({ id: z.string(), title: z.string().nullable() }),
    example: { id: dealExample.id, title: dealExample.title },
  },
});
