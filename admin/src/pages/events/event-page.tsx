import { Flex, Typography } from '@strapi/design-system';
import { ArrowClockwise } from '@strapi/icons';
import { BackButton, Layouts, Page } from '@strapi/strapi/admin';
import { Button } from '@strapi/design-system';
import { useParams } from 'react-router-dom';
import type { PosEventDetail } from '../../../../shared/contracts/pos';
import { CodeBlock, prettyJson } from '../../components/code-block';
import { DefinitionList } from '../../components/definition-list';
import { Panel } from '../../components/panel';
import { Loaded } from '../../components/page-states';
import { Time } from '../../components/time';
import { useAccess } from '../../permissions';
import { usePosEvent, useReprocess } from '../../services/pos';
import { useOutcome } from '../../utils/errors';
import { keyFor, useText } from '../../utils/text';
import { EventStateBadge } from './badges';
import { MovementTable } from './movement-table';
import { WaitingPanel } from './waiting-panel';

const REFRESH_MS = 3000;

const Facts = ({ event }: { event: PosEventDetail }) => {
  const text = useText();
  const { flags, held_until: until, stale } = event;
  return (
    <Panel title={text('event.details')}>
      <DefinitionList
        rows={[
          [text('event.state'), <EventStateBadge key="state" state={event.state} />],
          [text('event.kind'), text(`event.kind.${event.kind}`)],
          [text('event.connection'), event.connection.name],
          [text('connection.mode'), text(`connection.mode.${event.mode}`)],
          [text('event.occurred'), <Time key="occurred" at={event.occurred_at} both />],
          [text('event.received'), <Time key="received" at={event.received_at} both />],
        ]}
      />
      {event.state === 'held' && (
        <Typography role="status">
          {until ? text('event.held.for') : text('event.held')}{' '}
          {until && <Time at={until} both fontWeight="bold" />}
        </Typography>
      )}
      {event.error && <Typography textColor="danger600">{event.error}</Typography>}
      {flags.map((flag) => {
        const key = keyFor('event.flag', flag);
        return (
          <Typography key={flag} textColor="warning700">
            {key ? text(key) : flag}
          </Typography>
        );
      })}
      {stale.length > 0 && (
        <Typography textColor="warning700">
          {text('event.stale', {
            lines: stale.map(({ sku, quantity }) => `${sku}: ${quantity}`).join(', '),
          })}
        </Typography>
      )}
    </Panel>
  );
};

const Content = ({ event }: { event: PosEventDetail }) => {
  const text = useText();
  const outcome = useOutcome();
  const { can } = useAccess();
  const [reprocess, { isLoading }] = useReprocess();
  const unsettled = event.state !== 'applied' && event.state !== 'simulated';
  return (
    <Page.Main>
      <Page.Title>{event.external_id}</Page.Title>
      <Layouts.Header
        title={event.external_id}
        subtitle={text('event.number', { id: event.event_id })}
        navigationAction={<BackButton fallback="/plugins/switchboard/events" />}
        primaryAction={
          can('pos-events.manage') &&
          unsettled && (
            <Button
              variant="secondary"
              startIcon={<ArrowClockwise />}
              loading={isLoading}
              onClick={() =>
                void reprocess(event.id).then((done) => outcome(done, 'event.reprocessed'))
              }
            >
              {text('event.reprocess')}
            </Button>
          )
        }
      />
      <Layouts.Content>
        <Flex direction="column" alignItems="stretch" gap={6}>
          <Facts event={event} />
          {event.waiting.length > 0 && <WaitingPanel event={event} />}
          <Panel title={text('event.movements')}>
            {event.movements.length > 0 ? (
              <MovementTable label={text('event.movements')} movements={event.movements} />
            ) : (
              <Typography textColor="neutral600">{text('event.movements.none')}</Typography>
            )}
          </Panel>
          {event.simulated.length > 0 && (
            <Panel title={text('event.simulated')}>
              <MovementTable
                label={text('event.simulated')}
                movements={event.simulated.map((one, id) => ({ ...one, id }))}
              />
            </Panel>
          )}
          <Panel>
            <CodeBlock
              title={text('event.body')}
              code={prettyJson(event.body)}
              copied={event.body}
              copyLabel={text('event.body.copy')}
            />
          </Panel>
        </Flex>
      </Layouts.Content>
    </Page.Main>
  );
};

const EventPage = () => {
  const { id } = useParams();
  const event = usePosEvent(Number(id), { pollingInterval: REFRESH_MS });
  return <Loaded query={event}>{(data) => <Content event={data} />}</Loaded>;
};

export default EventPage;
