import { Button, Flex, Typography } from '@strapi/design-system';
import { type LogFilter, useCauses } from '../../services/webhooks';
import { usePolling } from '../../utils/polling';
import { useText } from '../../utils/text';
import { useCause } from '../webhooks/causes';

const SHOWN = 8;
const REFRESH_MS = 10_000;

interface CauseFilterProps {
  filter: LogFilter;
  chosen: string | undefined;
  onChoose(cause: string | undefined): void;
}

/** Why deliveries fail, grouped; a click shows those with that cause, another one all again. */
export const CauseFilter = ({ filter, chosen, onChoose }: CauseFilterProps) => {
  const text = useText();
  const cause = useCause();
  const { cause: _cause, state: _state, ...rest } = filter;
  const causes = useCauses(rest, { pollingInterval: usePolling(REFRESH_MS) });
  const groups = causes.data?.data ?? [];
  if (groups.length === 0) return null;
  return (
    <Flex role="group" aria-label={text('log.causes')} gap={2} wrap="wrap">
      <Typography variant="pi" textColor="neutral600">
        {text('log.causes')}
      </Typography>
      {groups.slice(0, SHOWN).map(({ cause: name, count }) => (
        <Button
          key={name}
          size="S"
          variant={chosen === name ? 'danger-light' : 'tertiary'}
          aria-pressed={chosen === name}
          onClick={() => onChoose(chosen === name ? undefined : name)}
        >
          {text('log.cause', { cause: cause.short(name), n: count })}
        </Button>
      ))}
    </Flex>
  );
};
