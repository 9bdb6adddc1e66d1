import { Button, Flex, Typography } from '@strapi/design-system';
import { Fragment } from 'react';
import { useIntl } from 'react-intl';
import type { ExplanationTerm, LevelExplanation } from '../../../../shared/contracts/stock';
import { Loaded } from '../../components/page-states';
import { useAbsoluteTime } from '../../components/time';
import type { TermFilter } from '../../services/stock';
import { useExplanation } from '../../services/stock';
import { same } from '../../utils/changed-fields';
import { usePolling } from '../../utils/polling';
import { type TextKey, useText } from '../../utils/text';
import { LevelChart } from './level-chart';

const MINUS = '−';

/** The filter of movements for a term; empty for a term that has none. */
export const filterOf = ({ type, reason, rest }: ExplanationTerm): TermFilter => ({
  type,
  ...(reason !== null && { reason }),
  ...(rest && { rest: 'true' as const }),
});

const keyOf = ({ type, reason, quantity, rest }: ExplanationTerm): TextKey => {
  if (type === 'opening' || type === 'count') return `term.${type}`;
  if (type === 'refund' && reason === 'no_restock') return 'term.noRestock';
  if (type === 'adjustment') {
    if (rest) return 'term.adjustment.rest';
    return reason === null ? 'term.adjustment.none' : 'term.adjustment';
  }
  return `term.${type}.${quantity < 0 ? 'loss' : 'gain'}`;
};

const useTermText = () => {
  const text = useText();
  const { formatNumber } = useIntl();
  return (term: ExplanationTerm, isFirst: boolean): string => {
    const { quantity, movements, reason } = term;
    const size = formatNumber(Math.abs(quantity));
    return text(keyOf(term), {
      n: isFirst && quantity < 0 ? `${MINUS}${size}` : size,
      movements,
      reason: reason ?? '',
    });
  };
};

interface SentenceProps {
  explanation: LevelExplanation;
  chosen: TermFilter | null;
  onChoose(filter: TermFilter | null): void;
}

/** "40 to begin − 98 sold = 7"; a click on a term shows the movements that it is the sum of. */
const Sentence = ({ explanation, chosen, onChoose }: SentenceProps) => {
  const text = useText();
  const termText = useTermText();
  const { formatNumber } = useIntl();
  const { quantity, terms } = explanation;
  return (
    <Flex role="group" aria-label={text('level.explain')} gap={1} wrap="wrap">
      {terms.map((term, index) => {
        const filter = filterOf(term);
        const isChosen = same(chosen, filter);
        const words = termText(term, index === 0);
        return (
          <Fragment key={JSON.stringify(filter)}>
            {index > 0 && (
              <Typography variant="delta">{term.quantity < 0 ? ` ${MINUS} ` : ' + '}</Typography>
            )}
            {term.movements === 0 ? (
              <Typography variant="delta">{words}</Typography>
            ) : (
              <Button
                size="S"
                variant={isChosen ? 'default' : 'tertiary'}
                aria-pressed={isChosen}
                onClick={() => onChoose(isChosen ? null : filter)}
              >
                {words}
              </Button>
            )}
          </Fragment>
        );
      })}
      <Typography variant="delta">{` = ${
        quantity < 0 ? MINUS : ''
      }${formatNumber(Math.abs(quantity))}`}</Typography>
    </Flex>
  );
};

interface ExplanationProps extends Omit<SentenceProps, 'explanation'> {
  levelId: number;
  refreshMs: number;
}

/** Why a level is what it is: as a sum, and as a line over the time since it was counted. */
export const Explanation = ({ levelId, refreshMs, ...sentence }: ExplanationProps) => {
  const text = useText();
  const absolute = useAbsoluteTime();
  const query = useExplanation(levelId, { pollingInterval: usePolling(refreshMs) });
  return (
    <Loaded query={query}>
      {(explanation) => (
        <Flex direction="column" alignItems="stretch" gap={4}>
          <Sentence explanation={explanation} {...sentence} />
          <Typography textColor="neutral600">
            {explanation.since
              ? text('level.explain.counted', { at: absolute(explanation.since) })
              : text('level.explain.opening')}
          </Typography>
          <LevelChart explanation={explanation} />
        </Flex>
      )}
    </Loaded>
  );
};
