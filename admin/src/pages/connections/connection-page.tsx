import { Flex, LinkButton, Typography } from '@strapi/design-system';
import { Link, useParams } from 'react-router-dom';
import type { Connection } from '../../../../shared/contracts/pos';
import { CopyButton } from '../../components/copy-button';
import { FormPage } from '../../components/form-page';
import { DefinitionList } from '../../components/definition-list';
import { useReason } from '../../components/disabled-reason';
import { Panel } from '../../components/panel';
import { Loaded } from '../../components/page-states';
import { Time } from '../../components/time';
import { useAccess } from '../../permissions';
import { useConnection, useUpdateConnection } from '../../services/pos';
import { useSaved } from '../../utils/errors';
import { usePolling } from '../../utils/polling';
import { useText } from '../../utils/text';
import { Actions } from './actions';
import { ClockSkew, ConnectionBadge } from './badges';
import { Closings } from './closings';
import { ConnectionForm, typeText, valuesOf } from './connection-form';
import { Expectation } from './expectation';
import { Refusals } from './refusals';
import { Takings } from './takings';

const REFRESH_MS = 10_000;
const LIST = '/plugins/switchboard/tills';

const Content = ({ connection }: { connection: Connection }) => {
  const text = useText();
  const savedOr = useSaved();
  const say = useReason();
  const { can } = useAccess();
  const [update] = useUpdateConnection();
  const {
    id,
    name,
    type,
    key,
    last_seen_at: seen,
    last_error: error,
    last_error_at: at,
  } = connection;
  const manage = can('connections.manage');
  return (
    <FormPage title={name} fallback={LIST} actions={manage && <Actions connection={connection} />}>
      <Flex direction="column" alignItems="stretch" gap={6}>
        <Panel
          title={text('connection.status')}
          actions={
            can('pos-events.read') && (
              <LinkButton
                tag={Link}
                variant="tertiary"
                to={`/plugins/switchboard/records?connection=${id}`}
              >
                {text('connection.events')}
              </LinkButton>
            )
          }
        >
          {!connection.active && (
            <Typography role="status" textColor="neutral800">
              {connection.disabled_reason
                ? text('connection.off.because', { reason: say(connection) })
                : text('connection.off.hint')}
            </Typography>
          )}
          <DefinitionList
            rows={[
              [text('connection.type'), text(typeText(type))],
              [text('connection.mode'), <ConnectionBadge key="mode" connection={connection} />],
              [
                text('connection.seen'),
                seen ? <Time key="seen" at={seen} both /> : text('connection.neverSeen'),
              ],
              [text('connection.expectation'), <Expectation key="when" connection={connection} />],
              [
                text('connection.skew'),
                <ClockSkew key="skew" seconds={connection.clock_skew_seconds} />,
              ],
              [
                text('connection.error'),
                error ? (
                  <Typography key="error" textColor="danger600">
                    {error} {at && <Time at={at} variant="pi" textColor="neutral600" />}
                  </Typography>
                ) : (
                  '–'
                ),
              ],
              [
                text('connection.key'),
                <Flex key="key" gap={1} wrap="wrap">
                  <Typography>{key}</Typography>
                  <Typography textColor="neutral600" style={{ whiteSpace: 'nowrap' }}>
                    {text(`connection.mode.${connection.mode}`)}
                  </Typography>
                  <CopyButton
                    value={key}
                    label={text('once.copy', { label: text('connection.key') })}
                  />
                </Flex>,
              ],
            ]}
          />
        </Panel>
        {can('sales.read') && <Takings connectionId={id} />}
        {can('pos-events.read') && <Closings connectionId={id} />}
        <ConnectionForm
          // Begins again once it is revoked: edits can no longer be saved.
          key={`${id} ${connection.revoked_at}`}
          initial={valuesOf(connection)}
          disabled={!manage || connection.revoked_at !== null}
          submitLabel={text('action.save')}
          onSave={async (_values, changed) =>
            savedOr(await update({ id, ...changed }), 'connection.saved')
          }
        />
        <Refusals connectionId={id} />
      </Flex>
    </FormPage>
  );
};

const ConnectionPage = () => {
  const { id } = useParams();
  const connection = useConnection(Number(id), { pollingInterval: usePolling(REFRESH_MS) });
  return <Loaded query={connection}>{(data) => <Content connection={data} />}</Loaded>;
};

export default ConnectionPage;
