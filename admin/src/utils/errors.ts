import { useNotification } from '@strapi/strapi/admin';
import { useCallback } from 'react';
import { useRefusals } from './refusals';
import { type TextKey, useText } from './text';

export const statusOf = (error: unknown): number | undefined =>
  (error as { status?: number } | undefined)?.status;

type Outcome<T> = { data: T } | { error: unknown };

/** Shows what came of an action; why, where it failed. */
export const useOutcome = () => {
  const { toggleNotification } = useNotification();
  const { whole } = useRefusals();
  const text = useText();
  return useCallback(
    <T>(outcome: Outcome<T>, success?: TextKey): T | undefined => {
      if ('error' in outcome) {
        toggleNotification({ type: 'danger', message: whole(outcome.error) });
        return undefined;
      }
      if (success) toggleNotification({ type: 'success', message: text(success) });
      return outcome.data;
    },
    [toggleNotification, whole, text]
  );
};

/** A form's problems, by field. */
export type Problems = Record<string, string | undefined>;

/** The result of saving a form. `problems` is empty if the message named no field. */
export type Saved = { saved: true } | { saved: false; problems: Problems };

/**
 * Says that it was saved, or hands what the server objects to to the form's fields.
 * @param by  how the form knows its fields: by their names, or by the whole path
 */
export const useSaved = (by: 'byField' | 'byPath' = 'byField') => {
  const outcome = useOutcome();
  const { [by]: problemsOf } = useRefusals();
  return useCallback(
    <T>(done: Outcome<T>, success?: TextKey): Saved => {
      if (!('error' in done)) {
        outcome(done, success);
        return { saved: true };
      }
      const problems = problemsOf(done.error);
      if (Object.keys(problems).length === 0) outcome(done);
      return { saved: false, problems };
    },
    [outcome, problemsOf]
  );
};
