import { Button, Flex, Typography } from '@strapi/design-system';
import { ArrowClockwise, Check } from '@strapi/icons';
import type { PosEventDetail } from '../../../../shared/contracts/pos';
import { ConfirmButton } from '../../components/confirm-button';
import { useAbsoluteTime } from '../../components/time';
import { useAcceptWithoutSale, useReprocess } from '../../services/pos';
import { useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';
import { readReceipt } from './receipt';

/** Says what a held refund waits for, and what happens if that never comes. */
const HeldQuestion = ({ event }: { event: PosEventDetail }) => {
  const text = useText();
  const absolute = useAbsoluteTime();
  const receipt = readReceipt(event.kind, event.body);
  const { held_until: until } = event;
  return (
    <Flex direction="column" gap={2}>
      <Typography textAlign="center">
        {text('event.held.waits', { sale: receipt?.saleId ?? '–' })}
      </Typography>
      <Typography textAlign="center">
        {until === null
          ? text('event.held.whole')
          : text('event.held.lines', { at: absolute(until) })}
      </Typography>
    </Flex>
  );
};

/** Applies a refund whose sale its owner does not wait for. */
const AcceptButton = ({ event }: { event: PosEventDetail }) => {
  const text = useText();
  const outcome = useOutcome();
  const [accept, { isLoading }] = useAcceptWithoutSale();
  const hasLines = (readReceipt(event.kind, event.body)?.lines.length ?? 0) > 0;
  return (
    <ConfirmButton
      icon={<Check />}
      variant="secondary"
      label={text('event.accept')}
      question={
        <Typography textAlign="center">
          {text(hasLines ? 'event.accept.question' : 'event.accept.whole')}
        </Typography>
      }
      disabled={isLoading}
      onConfirm={() => accept(event.id).then((done) => outcome(done, 'event.accepted'))}
    />
  );
};

export const ReprocessButton = ({ event }: { event: PosEventDetail }) => {
  const text = useText();
  const outcome = useOutcome();
  const [reprocess, { isLoading }] = useReprocess();
  const again = () => reprocess(event.id).then((done) => outcome(done, 'event.reprocessed'));
  if (event.state === 'held') {
    return (
      <Flex gap={2}>
        <AcceptButton event={event} />
        <ConfirmButton
          icon={<ArrowClockwise />}
          variant="secondary"
          label={text('event.reprocess')}
          question={<HeldQuestion event={event} />}
          disabled={isLoading}
          onConfirm={again}
        />
      </Flex>
    );
  }
  return (
    <Button
      variant="secondary"
      startIcon={<ArrowClockwise />}
      loading={isLoading}
      onClick={() => void again()}
    >
      {text('event.reprocess')}
    </Button>
  );
};
