import { Flex, LinkButton, Typography } from '@strapi/design-system';
import { ArrowsCounterClockwise, Cross, Play, Trash } from '@strapi/icons';
import { BackButton, Layouts, Page } from '@strapi/strapi/admin';
import { useState } from 'react';
import { Link, useNavigate, useParams } from 'react-router-dom';
import type { Connection } from '../../../../shared/contracts/pos';
import { ConfirmButton } from '../../components/confirm-button';
import { CopyButton } from '../../components/copy-button';
import { DefinitionList, Panel } from '../../components/definition-list';
import { Loaded } from '../../components/page-states';
import { Time } from '../../components/time';
import { useAccess } from '../../permissions';
import {
  useConnection,
  useDeleteConnection,
  usePosEvents,
  useRevokeConnection,
  useRotateConnection,
  useUpdateConnection,
} from '../../services/pos';
import { fieldErrorsOf, useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';
import { ClockSkew, ConnectionBadge } from './badges';
import { ConnectionForm, valuesOf } from './connection-form';
import { Credentials } from './credentials';

const REFRESH_MS = 10_000;
const LATEST = 100;
const LIST = '/plugins/switchboard/connections';

/** The way out of test mode, with what the latest test records would have done. */
const GoLive = ({ connection: { id, name } }: { connection: Connection }) => {
  const text = useText();
  const outcome = useOutcome();
  const [update] = useUpdateConnection();
  const { data } = usePosEvents({ connection: id, perPage: LATEST });
  const states = (data?.data ?? []).filter(({ mode }) => mode === 'test').map(({ state }) => state);
  const simulated = states.filter((state) => state === 'simulated').length;
  const summary = text('connection.goLive.summary', {
    total: states.length,
    simulated,
    problems: states.filter((state) => state === 'failed' || state === 'needs_mapping').length,
  });
  return (
    <ConfirmButton
      icon={<Play />}
      variant="success-light"
      label={text('connection.goLive')}
      question={`${summary} ${text('connection.goLive.question', { name })}`}
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
  return (
    <Flex gap={2} wrap="wrap">
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
  const outcome = useOutcome();
  const { can } = useAccess();
  const [update] = useUpdateConnection();
  const { id, name, key, last_seen_at: seen, last_error: error, last_error_at: at } = connection;
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
            <DefinitionList
              rows={[
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
            key={connection.updated_at}
            initial={valuesOf(connection)}
            disabled={!manage || connection.revoked_at !== null}
            submitLabel={text('action.save')}
            onSave={async ({ mode: _mode, ...values }) => {
              const done = await update({ id, ...values });
              const fields = 'error' in done ? fieldErrorsOf(done.error) : {};
              if (Object.keys(fields).length === 0) outcome(done, 'connection.saved');
              return fields;
            }}
          />
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
