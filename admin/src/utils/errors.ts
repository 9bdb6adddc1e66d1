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
