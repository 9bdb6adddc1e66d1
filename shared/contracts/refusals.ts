/**
 * Reasons of a refusal, for clients that speak another language than English: `code` of each of
 * `details.errors` (400), of `details` (404, 409, 503). docs/management-api.md#errors. The admin has a
 * text for each, `error.code.<code>`.
 */
export const REFUSAL_CODES = [
  // Schema errors of a field.
  'required',
  'invalid',
  'empty',
  'choose_one',
  'too_long',
  'too_many',
  'too_small',
  'too_large',
  'unknown_field',
  'control_characters',
  'time',
  // Errors of names and references.
  'taken',
  'named_twice',
  'no_item',
  'no_location',
  'no_connection',
  'archived',
  'future',
  'same_location',
  'zero',
  'country',
  'time_of_day',
  'same_time',
  'before_from',
  // A webhook.
  'url_invalid',
  'url_scheme',
  'url_credentials',
  'url_private',
  'events_unknown',
  'events_off',
  'filter_large',
  'filter_many',
  'filter_deep',
  'filter_keyword',
  'filter_reference',
  'filter_loop',
  'filter_place',
  'filter_pattern',
  'filter_entries',
  'filter_keywords',
  'filter_walks',
  'filter_schema',
  'header_name',
  'header_reserved',
  'header_value',
  'header_unknown',
  'headers_large',
  'headers_moved',
  // Errors of the current state.
  'module_off',
  'under_way',
  'finished',
  'foreign',
  'nobody_sends',
  'no_answer',
  'no_journal',
  'changed_meanwhile',
  'preview_used',
  'recovery_ended',
  'not_held',
  'no_encryption_key',
] as const;

export type RefusalCode = (typeof REFUSAL_CODES)[number];

/** Values in a code's text, such as `{ maximum: 255 }`. */
export type RefusalValues = Readonly<Record<string, string | number>>;

export interface CodedRefusal {
  code: RefusalCode;
  values?: RefusalValues;
}
