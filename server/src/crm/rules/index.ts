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

const possibleEvents = ({ possible }: KindRules): string[] => [
  ...new Set(
    (['create', 'update', 'delete'] as const).flatMap((action) =>
      possible({ action, keys: null, tags: true })
    )
  ),
];

const EVENTS_OF_KINDS: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries(KIND_RULES).map(([kind, rules]) => [kind, possibleEvents(rules)])
);

/** Every event that a write to a record of a kind may cause: asked about once a write. */
export const eventsOfKind = (kind: Kind | 'form'): readonly string[] =>
  EVENTS_OF_KINDS.get(kind) ?? [];

export type * from './types';
