import { useMemo } from 'react';
import type { CodedRefusal, RefusalValues } from '../../../shared/contracts/refusals';
import { keyFor, type TextKey, type Translate, useText } from './text';

/** The server's message about one field. */
interface FieldIssue extends Partial<CodedRefusal> {
  path?: (string | number)[];
  message?: string;
}

/** An error as the host's client hands it on; `status` is absent if no answer came. */
interface ApiError {
  status?: number;
  message?: string;
  details?: Partial<CodedRefusal> & { errors?: FieldIssue[] };
}

/** The messages for an answer of which only the status is known. */
const STATUS_KEYS: Readonly<Record<number, TextKey>> = {
  401: 'error.status.401',
  403: 'error.status.403',
  404: 'error.notFound',
  413: 'error.status.413',
  429: 'error.status.429',
};

const named = (values: RefusalValues = {}, text: Translate): RefusalValues => {
  const key = typeof values.module === 'string' ? keyFor('module', values.module) : undefined;
  return key ? { ...values, module: text(key) } : values;
};

/** A refusal's code in the reader's language; the server's own words where there is no text for it. */
const sentence = (
  text: Translate,
  { code, values, message }: Partial<CodedRefusal> & { message?: string }
): string | undefined => {
  const key = code === undefined ? undefined : keyFor('error.code', code);
  if (key) return text(key, named(values, text));
  return message && text('error.said', { message });
};

const issuesOf = (error: unknown): FieldIssue[] =>
  ((error ?? {}) as ApiError).details?.errors?.filter(
    ({ path, message }) => path && path.length > 0 && message
  ) ?? [];

/** Says what went wrong in the reader's language, after the codes that the server gives. */
export const describeError = (text: Translate, error: unknown): string => {
  const { status, message, details } = (error ?? {}) as ApiError;
  const issues = issuesOf(error);
  if (issues.length > 0) {
    return issues
      .map((issue) => `${(issue.path ?? []).join('.')}: ${sentence(text, issue)}`)
      .join('\n');
  }
  if (details?.code !== undefined) return sentence(text, { ...details, message }) ?? '';
  if (status === undefined) return text('error.status.none');
  if (status >= 500) return text('error.status.500');
  const key = STATUS_KEYS[status];
  return (key ? text(key) : sentence(text, { message })) ?? text('error.load');
};

const byName = (
  text: Translate,
  error: unknown,
  nameOf: (path: readonly (string | number)[]) => string
): Record<string, string> =>
  Object.fromEntries(
    issuesOf(error).map((issue) => [nameOf(issue.path ?? []), sentence(text, issue) ?? ''])
  );

/** The server's refusals in the reader's language. */
export interface RefusalTexts {
  /** The whole of it, for a notice. */
  whole(error: unknown): string;
  /** By the field's name; empty if it named none. */
  byField(error: unknown): Record<string, string>;
  /** As `byField`, by the whole path such as `lines.0.quantity`: for forms with lines. */
  byPath(error: unknown): Record<string, string>;
}

export const useRefusals = (): RefusalTexts => {
  const text = useText();
  return useMemo(
    () => ({
      whole: (error) => describeError(text, error),
      byField: (error) => byName(text, error, ([first]) => String(first)),
      byPath: (error) => byName(text, error, (path) => path.join('.')),
    }),
    [text]
  );
};
