import { Button, Dialog, Flex, Typography } from '@strapi/design-system';
import { type ReactNode, useCallback, useState } from 'react';
import type { Health, WaitingChoice } from '../../../../shared/contracts/webhooks';
import { FocusBack } from '../../components/focus-back';
import { Time } from '../../components/time';
import { useLookUpWebhook } from '../../services/webhooks';
import { useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';

const leftOf = ({ waiting, failing }: Health): number => waiting + failing;

interface WaitingQuestionProps {
  health: Health;
  /** null: it was closed without an answer. */
  onAnswer(choice: WaitingChoice | null): void;
}

const WaitingQuestion = ({ health, onAnswer }: WaitingQuestionProps) => {
  const text = useText();
  const left = leftOf(health);
  const { oldest_at: since } = health;
  return (
    <Dialog.Root open onOpenChange={(open) => !open && onAnswer(null)}>
      <Dialog.Content>
        <FocusBack />
        <Dialog.Header>{text('banner.switchOn')}</Dialog.Header>
        <Dialog.Body>
          <Typography textAlign="center">
            {text('banner.waiting', { n: left })}{' '}
            {since && (
              <>
                {text('banner.oldest')} <Time at={since} both />
              </>
            )}
          </Typography>
        </Dialog.Body>
        <Dialog.Footer>
          <Flex direction="column" alignItems="stretch" gap={2} flex="1">
            <Button fullWidth variant="secondary" onClick={() => onAnswer('send')}>
              {text('banner.send', { n: left })}
            </Button>
            <Button fullWidth variant="danger-light" onClick={() => onAnswer('discard')}>
              {text('banner.discard', { n: left })}
            </Button>
            <Dialog.Cancel>
              <Button fullWidth variant="tertiary">
                {text('action.cancel')}
              </Button>
            </Dialog.Cancel>
          </Flex>
        </Dialog.Footer>
      </Dialog.Content>
    </Dialog.Root>
  );
};

interface Asking {
  health: Health;
  answer(choice: WaitingChoice | null): void;
}

/**
 * Asks, before a webhook is switched on, whether what waits is to be sent or discarded.
 * @returns `ask`, which resolves with the choice, undefined if nothing waits and null if somebody thought
 * better of it or it could not be asked, and the `question` to be drawn
 */
export const useWaitingChoice = (): {
  ask(webhook: number): Promise<WaitingChoice | null | undefined>;
  question: ReactNode;
} => {
  const outcome = useOutcome();
  const [lookUp] = useLookUpWebhook();
  const [asking, setAsking] = useState<Asking>();
  const ask = useCallback(
    async (webhook: number) => {
      // As it is now: what a list or a page shows may be seconds old, and a list counts less.
      const { data, error } = await lookUp(webhook);
      if (!data) {
        outcome({ error });
        return null;
      }
      if (data.active || leftOf(data.health) === 0) return undefined;
      return new Promise<WaitingChoice | null>((resolve) => {
        setAsking({
          health: data.health,
          answer(choice) {
            setAsking(undefined);
            resolve(choice);
          },
        });
      });
    },
    [lookUp, outcome]
  );
  const question = asking && (
    <WaitingQuestion health={asking.health} onAnswer={(choice) => asking.answer(choice)} />
  );
  return { ask, question };
};
