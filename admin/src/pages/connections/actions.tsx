import { Button, Flex, Typography } from '@strapi/design-system';
import { ArrowsCounterClockwise, Cross, Lock, Play, Stop, Trash } from '@strapi/icons';
import { useState } from 'react';
import { useNavigate } from 'react-router-dom';
import type { Connection } from '../../../../shared/contracts/pos';
import { ConfirmButton } from '../../components/confirm-button';
import {
  useDeleteConnection,
  useRevokeConnection,
  useRotateConnection,
  useUpdateConnection,
} from '../../services/pos';
import { useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';
import { Credentials } from './credentials';
import { TestSummary } from './test-summary';

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

/** The way back into it. */
const BackToTest = ({ connection: { id, name } }: { connection: Connection }) => {
  const text = useText();
  const outcome = useOutcome();
  const [update] = useUpdateConnection();
  return (
    <ConfirmButton
      icon={<Stop />}
      variant="tertiary"
      label={text('connection.backToTest')}
      question={text('connection.backToTest.question', { name })}
      onConfirm={() =>
        update({ id, mode: 'test' }).then((done) => outcome(done, 'connection.inTest'))
      }
    />
  );
};

/** The actions that an owner has on a till's connection. */
export const Actions = ({ connection }: { connection: Connection }) => {
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
      {!connection.revoked_at &&
        (connection.mode === 'test' ? (
          <GoLive connection={connection} />
        ) : (
          <BackToTest connection={connection} />
        ))}
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
