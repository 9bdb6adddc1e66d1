/** The kinds of objects that the CRM knows. */
export const KINDS = [
  'contact',
  'tag',
  'company',
  'deal',
  'deal-stage',
  'task',
  'campaign',
] as const;
export type Kind = (typeof KINDS)[number];
