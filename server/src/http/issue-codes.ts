import type { z } from '@strapi/utils';
import type { CodedRefusal, RefusalCode, RefusalValues } from '../../../shared/contracts/refusals';
import { codeOf, refusal } from '../runtime/refusal';

/** What a schema's `refine` or `addIssue` says, with the code that `codeOfIssue` finds again. */
export const coded = (message: string, code: RefusalCode, values?: RefusalValues) => ({
  message,
  params: refusal(message, code, values),
});

const bounded = (
  { origin }: { origin: string },
  bound: number | bigint,
  codes: Readonly<Record<'string' | 'list' | 'number', RefusalCode>>,
  named: string
): CodedRefusal => {
  const kind = origin === 'string' ? 'string' : origin === 'array' ? 'list' : 'number';
  return { code: codes[kind], values: { [named]: Number(bound) } };
};

/** What a schema found, coded; undefined where only its message tells. */
export const codeOfIssue = (issue: z.core.$ZodIssue): CodedRefusal | undefined => {
  if (issue.code !== 'custom' && issue.input === undefined) return { code: 'required' };
  switch (issue.code) {
    case 'custom':
      return issue.params?.code === undefined ? undefined : codeOf(issue.params as CodedRefusal);
    case 'too_small':
      return bounded(
        issue,
        issue.minimum,
        { string: 'empty', list: 'choose_one', number: 'too_small' },
        'minimum'
      );
    case 'too_big':
      return bounded(
        issue,
        issue.maximum,
        { string: 'too_long', list: 'too_many', number: 'too_large' },
        'maximum'
      );
    case 'unrecognized_keys':
      return { code: 'unknown_field' };
    case 'invalid_format':
      return { code: issue.format === 'datetime' ? 'time' : 'invalid' };
    default:
      return { code: 'invalid' };
  }
};
