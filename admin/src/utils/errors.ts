import { useAPIErrorHandler, useNotification } from '@strapi/strapi/admin';
import { useCallback } from 'react';
import { type TextKey, useText } from './text';

interface FieldIssue {
  path?: (string | number)[];
  message?: string;
}

/** What the server said about each field, by the field's name; empty where it named none. */
export const fieldErrorsOf = (error: unknown): Record<string, string> => {
  const { details } = (error ?? {}) as { details?: { errors?: FieldIssue[] } };
  return Object.fromEntries(
    (details?.errors ?? [])
      .filter(({ path, message }) => path && path.length > 0 && message)
      .map(({ path, message }) => [String(path?.[0]), String(message)])
  );
};

export const statusOf = (error: unknown): number | undefined =>
  (error as { status?: number } | undefined)?.status;

type Outcome<T> = { data: T } | { error: unknown };

/** Shows what came of an action: the server's own message where it failed. */
export const useOutcome = () => {
  const { toggleNotification } = useNotification();
  const { _unstableFormatAPIError: format } = useAPIErrorHandler();
  const text = useText();
  return useCallback(
    <T>(outcome: Outcome<T>, success?: TextKey): T | undefined => {
      if ('error' in outcome) {
        toggleNotification({
          type: 'danger',
          message: format(outcome.error as Parameters<typeof format>[0]),
        });
        return undefined;
      }
      if (success) toggleNotification({ type: 'success', message: text(success) });
      return outcome.data;
    },
    [toggleNotification, format, text]
  );
};

/** What is wrong with a form, by field. */
export type Problems = Record<string, string | undefined>;

/** What came of saving a form. `problems` is empty where the message named no field. */
export type Saved = { saved: true } | { saved: false; problems: Problems };

/** Says that it was saved, or hands what the server objects to to the form's fields. */
export const useSaved = () => {
  const outcome = useOutcome();
  return useCallback(
    <T>(done: Outcome<T>, success?: TextKey): Saved => {
      if (!('error' in done)) {
        outcome(done, success);
        return { saved: true };
      }
      const problems = fieldErrorsOf(done.error);
      if (Object.keys(problems).length === 0) outcome(done);
      return { saved: false, problems };
    },
    [outcome]
  );
};
