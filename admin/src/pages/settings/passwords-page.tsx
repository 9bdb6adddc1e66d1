import { Button, Field, Flex, TextInput, Typography } from '@strapi/design-system';
import { Plus, Trash } from '@strapi/icons';
import { Layouts, Page } from '@strapi/strapi/admin';
import { useState } from 'react';
import type {
  ApplicationPassword,
  CreatedApplicationPassword,
} from '../../../../shared/contracts/access';
import { ConfirmButton } from '../../components/confirm-button';
import { type Column, DataTable } from '../../components/data-table';
import { Panel } from '../../components/panel';
import { EditForm } from '../../components/edit-form';
import { Loaded } from '../../components/page-states';
import { ShownOnce } from '../../components/shown-once';
import { Time } from '../../components/time';
import { permissionsFor } from '../../permissions';
import { useCreatePassword, usePasswords, useRevokePassword } from '../../services/settings';
import { type Problems, useOutcome, useSaved } from '../../utils/errors';
import { useText } from '../../utils/text';

type Created = CreatedApplicationPassword['data'];

const CreateForm = ({ onCreated }: { onCreated(created: Created): void }) => {
  const text = useText();
  const savedOr = useSaved();
  const [create] = useCreatePassword();
  // Each password starts with an empty form.
  const [round, setRound] = useState(0);
  return (
    <Panel title={text('passwords.create')}>
      <EditForm<{ name: string }>
        key={round}
        initial={{ name: '' }}
        problemsOf={({ name }): Problems =>
          name.trim() === '' ? { name: text('form.required') } : {}
        }
        onSave={async ({ name }) => {
          const done = await create({ name: name.trim() });
          if (!('error' in done)) {
            onCreated(done.data);
            setRound(round + 1);
          }
          return savedOr(done);
        }}
      >
        {({ values, errors, saving, set }) => (
          <Flex gap={2} alignItems="end" wrap="wrap">
            <Field.Root name="name" required error={errors.name} minWidth="28rem">
              <Field.Label>{text('passwords.name')}</Field.Label>
              <TextInput
                value={values.name}
                maxLength={100}
                placeholder={text('passwords.name.example')}
                onChange={(event) => set('name', event.currentTarget.value)}
              />
              <Field.Error />
            </Field.Root>
            <Button type="submit" size="L" startIcon={<Plus />} loading={saving}>
              {text('passwords.create.submit')}
            </Button>
          </Flex>
        )}
      </EditForm>
    </Panel>
  );
};

const Passwords = () => {
  const text = useText();
  const outcome = useOutcome();
  const passwords = usePasswords();
  const [revoke] = useRevokePassword();
  const [created, setCreated] = useState<Created>();
  const columns: Column<ApplicationPassword>[] = [
    {
      id: 'name',
      label: text('passwords.name'),
      cell: ({ name }) => <Typography fontWeight="bold">{name}</Typography>,
    },
    {
      id: 'created',
      label: text('passwords.created'),
      cell: (row) => <Time at={row.created_at} />,
    },
    {
      id: 'used',
      label: text('passwords.used'),
      cell: ({ last_used_at: at }) => (at ? <Time at={at} /> : text('passwords.never')),
    },
    {
      id: 'actions',
      label: text('table.actions'),
      hiddenLabel: true,
      cell: ({ id, name }) => (
        <ConfirmButton
          compact
          icon={<Trash />}
          label={text('passwords.revoke', { name })}
          question={text('passwords.revoke.question', { name })}
          onConfirm={() => revoke(id).then((done) => outcome(done, 'passwords.revoked'))}
        />
      ),
    },
  ];
  return (
    <Page.Main>
      <Page.Title>{text('settings.passwords')}</Page.Title>
      <Layouts.Header title={text('settings.passwords')} subtitle={text('passwords.subtitle')} />
      <Layouts.Content>
        <Flex direction="column" alignItems="stretch" gap={6}>
          <CreateForm onCreated={setCreated} />
          <Loaded query={passwords}>
            {(rows) => (
              <DataTable
                label={text('settings.passwords')}
                columns={columns}
                rows={rows}
                rowId={({ id }) => id}
                empty={{ text: text('passwords.empty') }}
              />
            )}
          </Loaded>
        </Flex>
      </Layouts.Content>
      {created && (
        <ShownOnce
          title={text('passwords.once', { name: created.name })}
          values={[{ label: text('passwords.password'), value: created.password }]}
          onDone={() => setCreated(undefined)}
        />
      )}
    </Page.Main>
  );
};

const PasswordsPage = () => (
  <Page.Protect permissions={permissionsFor('application-passwords.manage')}>
    <Passwords />
  </Page.Protect>
);

export default PasswordsPage;
