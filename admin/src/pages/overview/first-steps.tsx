import { Button, Flex, LinkButton, Typography } from '@strapi/design-system';
import { CheckCircle, CheckCircleEmpty } from '@strapi/icons';
import { useState } from 'react';
import { Link } from 'react-router-dom';
import type { FirstSteps as Steps } from '../../../../shared/contracts/overview';
import { Panel } from '../../components/panel';
import { useAttention } from '../../services/settings';
import { useText } from '../../utils/text';

const HIDDEN = 'switchboard-first-steps';

const STEPS = [
  { id: 'webhook', to: 'webhooks/create' },
  { id: 'till', to: 'tills/create' },
  { id: 'contact', to: 'import' },
] as const satisfies readonly { id: keyof Steps; to: string }[];

/** Steps to take on a new site; hidden once all are done, or by the user. */
export const FirstSteps = () => {
  const text = useText();
  const { data } = useAttention();
  const [isHidden, setHidden] = useState(() => localStorage.getItem(HIDDEN) !== null);
  const steps = STEPS.filter(({ id }) => (data?.steps[id] ?? null) !== null);
  if (!data || isHidden || steps.every(({ id }) => data.steps[id])) return null;
  const hide = (): void => {
    localStorage.setItem(HIDDEN, 'hidden');
    setHidden(true);
  };
  return (
    <Panel
      title={text('steps.title')}
      actions={
        <Button size="S" variant="tertiary" onClick={hide}>
          {text('steps.hide')}
        </Button>
      }
    >
      <Flex tag="ul" direction="column" alignItems="stretch" gap={3}>
        {steps.map(({ id, to }) => {
          const isDone = data.steps[id];
          return (
            <Flex tag="li" key={id} justifyContent="space-between" gap={3} wrap="wrap">
              <Flex gap={2}>
                {isDone ? (
                  <CheckCircle fill="success600" aria-hidden />
                ) : (
                  <CheckCircleEmpty fill="neutral500" aria-hidden />
                )}
                <Typography textColor={isDone ? 'neutral600' : 'neutral800'}>
                  {text(`steps.${id}`)} {isDone && `(${text('steps.done')})`}
                </Typography>
              </Flex>
              {!isDone && (
                <LinkButton
                  tag={Link}
                  to={`/plugins/switchboard/${to}`}
                  size="S"
                  variant="tertiary"
                >
                  {text(`steps.${id}.do`)}
                </LinkButton>
              )}
            </Flex>
          );
        })}
      </Flex>
    </Panel>
  );
};
