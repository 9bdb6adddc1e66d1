import { Flex, Typography } from '@strapi/design-system';
import { BackButton, Layouts, Page } from '@strapi/strapi/admin';
import { useParams } from 'react-router-dom';
import type { PosEventDetail } from '../../../../shared/contracts/pos';
import { CodeBlock, prettyJson } from '../../components/code-block';
import { DefinitionList } from '../../components/definition-list';
import { Folded } from '../../components/folded';
import { Panel } from '../../components/panel';
import { Loaded } from '../../components/page-states';
import { RowLink } from '../../components/row-link';
import { Time } from '../../components/time';
import { useAccess } from '../../permissions';
import { usePosEvent } from '../../services/pos';
import { usePolling } from '../../utils/polling';
import { keyFor, useText } from '../../utils/text';
import { EventStateBadge } from './badges';
import { ClosingPanel } from './closing-panel';
import { HandlingPanel } from './handling-panel';
import { MovementTable } from './movement-table';
import { ReceiptPanel } from './receipt-panel';
import { ReprocessButton } from './reprocess-button';
import { needsAttention } from './states';
import { WaitingPanel } from './waiting-panel';

const REFRESH_MS = 3000;

const Till = ({ connection: { id, name } }: Pick<PosEventDetail, 'connection'>) => {
  const { can } = useAccess();
  if (!can('connections.read')) return <>{name}</>;
  return <RowLink to={`/plugins/switchboard/tills/${id}`}>{name}</RowLink>;
};

const Facts = ({ event }: { event: PosEventDetail }) => {
  const text = useText();
  const { flags, held_until: until, stale } = event;
  return (
    <Panel title={text('event.details')}>
      <DefinitionList
        rows={[
          [text('event.state'), <EventStateBadge key="state" event={event} />],
          [text('event.kind'), text(`event.kind.${event.kind}`)],
          [text('event.connection'), <Till key="till" connection={event.connection} />],
          [text('connection.mode'), text(`connection.mode.${event.mode}`)],
          [text('event.occurred'), <Time key="occurred" at={event.occurred_at} both />],
          [text('event.received'), <Time key="received" at={event.received_at} both />],
        ]}
      />
      {event.state === 'simulated' && needsAttention(event) && (
        <Typography role="status" textColor="neutral800">
          {text('event.attention.test')}
        </Typography>
      )}
      {event.state === 'held' && (
        <Typography role="status">
          {text(until ? 'event.held.for' : 'event.held')}{' '}
          {until && <Time at={until} both fontWeight="bold" />}
        </Typography>
      )}
      {event.error && <Typography textColor="danger600">{event.error}</Typography>}
      {event.customer_error && (
        <Typography textColor="danger600">
          {text('event.customer.error', { error: event.customer_error })}
        </Typography>
      )}
      {flags.map((flag) => {
        const key = keyFor('event.flag', flag);
        return (
          <Typography key={flag} textColor="neutral800">
            {key ? text(key) : flag}
          </Typography>
        );
      })}
      {stale.length > 0 && (
        <Typography textColor="neutral800">
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
  const { can } = useAccess();
  const unsettled = event.state !== 'applied' && event.state !== 'simulated';
  return (
    <Page.Main>
      <Page.Title>{event.external_id}</Page.Title>
      <Layouts.Header
        title={event.external_id}
        subtitle={text('event.number', { id: event.event_id })}
        navigationAction={<BackButton fallback="/plugins/switchboard/records" />}
        primaryAction={can('pos-events.manage') && unsettled && <ReprocessButton event={event} />}
      />
      <Layouts.Content>
        <Flex direction="column" alignItems="stretch" gap={6}>
          <Facts event={event} />
          {event.waiting.length > 0 && <WaitingPanel event={event} />}
          <ReceiptPanel event={event} />
          <ClosingPanel event={event} />
          {event.kind !== 'closing' && (
            <Panel title={text('event.movements')}>
              {event.movements.length > 0 ? (
                <MovementTable label={text('event.movements')} movements={event.movements} />
              ) : (
                <Typography textColor="neutral600">{text('event.movements.none')}</Typography>
              )}
            </Panel>
          )}
          {event.simulated.length > 0 && (
            <Panel title={text('event.simulated')}>
              <MovementTable
                label={text('event.simulated')}
                movements={event.simulated.map((one, id) => ({ ...one, id }))}
              />
            </Panel>
          )}
          <HandlingPanel by_hand={event.by_hand} />
          <Panel>
            <Folded label={text('event.json')}>
              <CodeBlock
                title={text('event.body')}
                code={prettyJson(event.body)}
                copied={event.body}
                copyLabel={text('event.body.copy')}
              />
            </Folded>
          </Panel>
        </Flex>
      </Layouts.Content>
    </Page.Main>
  );
};

const EventPage = () => {
  const { id } = useParams();
  const event = usePosEvent(Number(id), { pollingInterval: usePolling(REFRESH_MS) });
  return <Loaded query={event}>{(data) => <Content event={data} />}</Loaded>;
};

export default EventPage;
