import { Button, Flex, Typography } from '@strapi/design-system';
import { ArrowsCounterClockwise, Cross, Lock, Play, Stop, Trash } from '@strapi/icons';
import { useState } from 'react';
import { useNavigate } from 'react-router-dom';
import type { Connection, ConnectionMode } from '../../../../shared/contracts/pos';
import { ActionMenu, type MenuAction } from '../../components/action-menu';
import { ConfirmButton } from '../../components/confirm-button';
import {
  useDeleteConnection,
  useRevokeConnection,
  useRotateConnection,
  useUpdateConnection,
} from '../../services/pos';
import { useOutcome } from '../../utils/errors';
import { type TextKey, useText } from '../../utils/text';
import { Credentials } from './credentials';
import { TestSummary } from './test-summary';

const LIST = '/plugins/switchboard/tills';

type ConnectionChange = { active: boolean } | { mode: ConnectionMode };

/** The actions that an owner has on a till's connection. */
export const Actions = ({ connection }: { connection: Connection }) => {
  const text = useText();
  const navigate = useNavigate();
  const outcome = useOutcome();
  const [secret, setSecret] = useState<string>();
  const [rotate] = useRotateConnection();
  const [revoke] = useRevokeConnection();
  const [remove] = useDeleteConnection();
  const [update] = useUpdateConnection();
  const { id, name, active, mode, revoked_at: revokedAt } = connection;
  const change = async (changes: ConnectionChange, said: TextKey): Promise<void> => {
    outcome(await update({ id, ...changes }), said);
  };
  const goLive = (
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
      onConfirm={() => change({ mode: 'live' }, 'connection.live')}
    />
  );
  const ofOne: MenuAction[] = [
    ...(mode === 'live'
      ? [
          {
            icon: <Stop />,
            label: text('connection.backToTest'),
            question: text('connection.backToTest.question', { name }),
            onConfirm: () => change({ mode: 'test' }, 'connection.inTest'),
          },
        ]
      : []),
    {
      icon: <ArrowsCounterClockwise />,
      label: text('connection.rotate'),
      question: text('connection.rotate.question'),
      onConfirm: async () => setSecret(outcome(await rotate(id))?.secret),
    },
    ...(active
      ? [
          {
            icon: <Lock />,
            label: text('action.switchOff'),
            question: text('connection.switchOff.question', { name }),
            onConfirm: () => change({ active: false }, 'connection.switchedOff'),
          },
        ]
      : []),
    {
      icon: <Cross />,
      label: text('connection.revoke'),
      question: text('connection.revoke.question', { name }),
      isDangerous: true,
      onConfirm: () => revoke(id).then((done) => outcome(done, 'connection.revokedNow')),
    },
  ];
  const deletion: MenuAction = {
    icon: <Trash />,
    label: text('action.delete'),
    question: text('connection.delete.question', { name }),
    isDangerous: true,
    onConfirm: async () => {
      const done = await remove(id);
      outcome(done, 'connection.deleted');
      if (!('error' in done)) navigate(LIST);
    },
  };
  return (
    <Flex gap={2} wrap="wrap">
      {!revokedAt && !active && (
        <Button
          variant="success-light"
          startIcon={<Play />}
          onClick={() => void change({ active: true }, 'connection.switchedOn')}
        >
          {text('banner.switchOn')}
        </Button>
      )}
      {!revokedAt && mode === 'test' && goLive}
      <ActionMenu actions={[...(revokedAt ? [] : ofOne), deletion]} />
      {secret && (
        <Credentials connection={connection} secret={secret} onDone={() => setSecret(undefined)} />
      )}
    </Flex>
  );
};
