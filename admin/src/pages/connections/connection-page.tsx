import { Button, Flex, LinkButton, Typography } from '@strapi/design-system';
import { ArrowsCounterClockwise, Cross, Lock, Play, Trash } from '@strapi/icons';
import { BackButton, Layouts, Page } from '@strapi/strapi/admin';
import { useState } from 'react';
import { Link, useNavigate, useParams } from 'react-router-dom';
import type { Connection } from '../../../../shared/contracts/pos';
import { ConfirmButton } from '../../components/confirm-button';
import { CopyButton } from '../../components/copy-button';
import { DefinitionList } from '../../components/definition-list';
import { Panel } from '../../components/panel';
import { Loaded } from '../../components/page-states';
import { Time } from '../../components/time';
import { useAccess } from '../../permissions';
import {
  useConnection,
  useDeleteConnection,
  useRevokeConnection,
  useRotateConnection,
  useUpdateConnection,
} from '../../services/pos';
import { useOutcome, useSaved } from '../../utils/errors';
import { useText } from '../../utils/text';
import { ClockSkew, ConnectionBadge } from './badges';
import { ConnectionForm, valuesOf } from './connection-form';
import { Credentials } from './credentials';
import { Refusals } from './refusals';
import { TestSummary } from './test-summary';

const REFRESH_MS = 10_000;
const LIST = '/plugins/switchboard/connections';

/** The way out of test mode. */
const GoLive = ({ connection: { id, name } }: { connection: Connection }) => {
  const text = useText();
  const outcome = useOutcome();
  const [update] = useUpdateConnection();
  return (
    <ConfirmButton
      icon={<Play />}
      variant="success-light"
      label={text('connection.goLive')}
      question={
        <Flex direction="column" gap={2}>
          <TestSummary connectionId={id} />
          <Typography textAlign="center">{text('connection.goLive.question', { name })}</Typography>
        </Flex>
      }
      onConfirm={() =>
        update({ id, mode: 'live' }).then((done) => outcome(done, 'connection.live'))
      }
    />
  );
};

const Actions = ({ connection }: { connection: Connection }) => {
  const text = useText();
  const navigate = useNavigate();
  const outcome = useOutcome();
  const [secret, setSecret] = useState<string>();
  const [rotate] = useRotateConnection();
  const [revoke] = useRevokeConnection();
  const [remove] = useDeleteConnection();
  const { id, name } = connection;
  const [update] = useUpdateConnection();
  const onActive = (active: boolean) =>
    update({ id, active }).then((done) =>
      outcome(done, active ? 'connection.switchedOn' : 'connection.switchedOff')
    );
  return (
    <Flex gap={2} wrap="wrap">
      {!connection.revoked_at && connection.active && (
        <ConfirmButton
          icon={<Lock />}
          label={text('action.switchOff')}
          question={text('connection.switchOff.question', { name })}
          onConfirm={() => onActive(false)}
        />
      )}
      {!connection.revoked_at && !connection.active && (
        <Button variant="success-light" startIcon={<Play />} onClick={() => void onActive(true)}>
          {text('banner.switchOn')}
        </Button>
      )}
      {!connection.revoked_at && connection.mode === 'test' && <GoLive connection={connection} />}
      {!connection.revoked_at && (
        <>
          <ConfirmButton
            icon={<ArrowsCounterClockwise />}
            label={text('connection.rotate')}
            question={text('connection.rotate.question')}
            onConfirm={async () => setSecret(outcome(await rotate(id))?.secret)}
          />
          <ConfirmButton
            icon={<Cross />}
            label={text('connection.revoke')}
            question={text('connection.revoke.question', { name })}
            onConfirm={() => revoke(id).then((done) => outcome(done, 'connection.revokedNow'))}
          />
        </>
      )}
      <ConfirmButton
        icon={<Trash />}
        label={text('action.delete')}
        question={text('connection.delete.question', { name })}
        onConfirm={async () => {
          const done = await remove(id);
          outcome(done, 'connection.deleted');
          if (!('error' in done)) navigate(LIST);
        }}
      />
      {secret && (
        <Credentials connection={connection} secret={secret} onDone={() => setSecret(undefined)} />
      )}
    </Flex>
  );
};

const Content = ({ connection }: { connection: Connection }) => {
  const text = useText();
  const savedOr = useSaved();
  const { can } = useAccess();
  const [update] = useUpdateConnection();
  const {
    id,
    name,
    type,
    key,
    disabled_reason: offBecause,
    last_seen_at: seen,
    last_error: error,
    last_error_at: at,
  } = connection;
  const manage = can('connections.manage');
  return (
    <Page.Main>
      <Page.Title>{name}</Page.Title>
      <Layouts.Header
        title={name}
        navigationAction={<BackButton fallback={LIST} />}
        primaryAction={manage && <Actions connection={connection} />}
      />
      <Layouts.Content>
        <Flex direction="column" alignItems="stretch" gap={6}>
          <Panel
            title={text('connection.status')}
            actions={
              can('pos-events.read') && (
                <LinkButton
                  tag={Link}
                  variant="tertiary"
                  to={`/plugins/switchboard/events?connection=${id}`}
                >
                  {text('connection.events')}
                </LinkButton>
              )
            }
          >
            {!connection.active && (
              <Typography role="status" textColor="warning700">
                {offBecause
                  ? text('connection.off.because', { reason: offBecause })
                  : text('connection.off.hint')}
              </Typography>
            )}
            <DefinitionList
              rows={[
                [text('connection.type'), type],
                [text('connection.mode'), <ConnectionBadge key="mode" connection={connection} />],
                [
                  text('connection.seen'),
                  seen ? <Time key="seen" at={seen} both /> : text('connection.neverSeen'),
                ],
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
                  <Flex key="key" gap={1}>
                    <Typography>{key}</Typography>
                    <CopyButton
                      value={key}
                      label={text('once.copy', { label: text('connection.key') })}
                    />
                  </Flex>,
                ],
              ]}
            />
          </Panel>
          <ConnectionForm
            key={id}
            initial={valuesOf(connection)}
            disabled={!manage || connection.revoked_at !== null}
            submitLabel={text('action.save')}
            onSave={async (_values, changed) =>
              savedOr(await update({ id, ...changed }), 'connection.saved')
            }
          />
          <Refusals connectionId={id} />
        </Flex>
      </Layouts.Content>
    </Page.Main>
  );
};

const ConnectionPage = () => {
  const { id } = useParams();
  const connection = useConnection(Number(id), { pollingInterval: REFRESH_MS });
  return <Loaded query={connection}>{(data) => <Content connection={data} />}</Loaded>;
};

export default ConnectionPage;
