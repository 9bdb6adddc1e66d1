import type { Kind } from './kind-names';
import { campaignRules } from './campaign-rules';
import { companyRules } from './company-rules';
import { contactRules } from './contact-rules';
import { dealRules } from './deal-rules';
import { formRules } from './form-rules';
import { taskRules } from './task-rules';
import type { KindRules } from './types';

/** Kinds without rules send no events of their own. */
export const KIND_RULES: Readonly<Partial<Record<Kind | 'form', KindRules>>> = {
  contact: contactRules,
  company: companyRules,
  deal: dealRules,
  task: taskRules,
  campaign: campaignRules,
  form: formRules,
};

/** Every event that a write to a mapped type may cause: asked about once a write. */
export const SOURCE_EVENTS: readonly string[] = Object.values(KIND_RULES).flatMap((rules) => [
  ...new Set(
    (['create', 'update', 'delete'] as const).flatMap((action) =>
      rules.possible({ action, keys: null, tags: true })
    )
  ),
]);

export type * from './types';
