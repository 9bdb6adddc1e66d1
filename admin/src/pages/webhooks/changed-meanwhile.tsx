import { Button, Dialog, Typography } from '@strapi/design-system';
import { ConfirmDialog } from '@strapi/strapi/admin';
import { type ReactNode, useCallback, useState } from 'react';
import type { ManagedWebhook } from '../../../../shared/contracts/webhooks';
import { FocusBack } from '../../components/focus-back';
import { Time } from '../../components/time';
import { same } from '../../utils/changed-fields';
import { useText } from '../../utils/text';
import { headersOf } from './header-rows';
import type { WebhookValues } from './webhook-form';

interface Conflict {
  by: string;
  at: string;
}

/** The change that another one came before; undefined for any other error. */
export const conflictOf = (error: unknown): Conflict | undefined => {
  const { details } = (error ?? {}) as { details?: { code?: string; values?: Conflict } };
  return details?.code === 'changed_meanwhile' ? details.values : undefined;
};

const LOOKS = 20;
const LOOK_AGAIN_MS = 100;

/** Reads until the answer is as new as the change; a query that is under way may answer with what is known. */
export const readSince = async <T extends { updated_at: string }>(
  read: () => Promise<T | undefined>,
  at: string
): Promise<T | undefined> => {
  for (let look = 0; look < LOOKS; look += 1) {
    const found = await read();
    if (!found || Date.parse(found.updated_at) >= Date.parse(at)) return found;
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
  return undefined;
};

/** True if a field that was edited here has another value on the server than editing began with. */
export const haveBothChanged = (
  changed: Partial<WebhookValues>,
  before: WebhookValues,
  latest: ManagedWebhook
): boolean => {
  const now = { ...latest, headers: headersOf(latest), basedOn: '' };
  return (Object.keys(changed) as (keyof WebhookValues)[]).some(
    (field) => !same(now[field], before[field])
  );
};

/**
 * Asks what to do about edits of something that somebody has changed meanwhile.
 * @returns `ask`, which resolves with true if they are to be saved all the same, and the `dialog` to be drawn
 */
export const useConflict = (): { ask(conflict: Conflict): Promise<boolean>; dialog: ReactNode } => {
  const text = useText();
  const [asking, setAsking] = useState<Conflict & { answer(save: boolean): void }>();
  const ask = useCallback(
    (conflict: Conflict) =>
      new Promise<boolean>((resolve) => {
        setAsking({
          ...conflict,
          answer(save) {
            setAsking(undefined);
            resolve(save);
          },
        });
      }),
    []
  );
  const dialog = asking && (
    <Dialog.Root open onOpenChange={(open) => !open && asking.answer(false)}>
      <ConfirmDialog
        title={text('conflict.title')}
        endAction={
          <>
            <FocusBack />
            <Button fullWidth variant="danger-light" onClick={() => asking.answer(true)}>
              {text('conflict.save')}
            </Button>
          </>
        }
      >
        <Typography textAlign="center">
          {asking.by === '' ? text('conflict.unknown') : text('conflict.by', { by: asking.by })}{' '}
          <Time at={asking.at} both />. {text('conflict.question')}
        </Typography>
      </ConfirmDialog>
    </Dialog.Root>
  );
  return { ask, dialog };
};
