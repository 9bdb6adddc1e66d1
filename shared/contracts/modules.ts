import type { Features } from './features';

/** The optional modules of the CRM. Events of a module are offered and sent only while it is on. */
export const MODULE_IDS = [
  'webhooks',
  'companies',
  'sales_pipeline',
  'email_marketing',
  'email_conversations',
] as const;

export type ModuleId = (typeof MODULE_IDS)[number];

/** One row of `GET /switchboard/modules`. */
export interface Module {
  id: ModuleId;
  name: string;
  enabled: boolean;
}

/** `GET` and `PUT /switchboard/modules`. */
export interface ModulesAnswer {
  data: Module[];
  /** The parts that the site's options enable. */
  features: Features;
}
