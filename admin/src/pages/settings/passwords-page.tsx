import { Button, Field, Flex, TextInput, Typography } from '@strapi/design-system';
import { Plus, Trash } from '@strapi/icons';
import { Layouts, Page } from '@strapi/strapi/admin';
import { type FormEvent, useState } from 'react';
import type {
  ApplicationPassword,
  CreatedApplicationPassword,
} from '../../../../shared/contracts/access';
import { ConfirmButton } from '../../components/confirm-button';
import { type Column, DataTable } from '../../components/data-table';
import { Panel } from '../../components/definition-list';
import { Loaded } from '../../components/page-states';
import { ShownOnce } from '../../components/shown-once';
import { Time } from '../../components/time';
import { permissionsFor } from '../../permissions';
import { useCreatePassword, usePasswords, useRevokePassword } from '../../services/settings';
import { fieldErrorsOf, useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';

type Created = CreatedApplicationPassword['data'];

const CreateForm = ({ onCreated }: { onCreated(created: Created): void }) => {
  const text = useText();
  const outcome = useOutcome();
  const [name, setName] = useState('');
  const [error, setError] = useState<string>();
  const [create, { isLoading }] = useCreatePassword();
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (name.trim() === '') {
      setError(text('form.required'));
      return;
    }
    const done = await create({ name: name.trim() });
    const problem = 'error' in done ? fieldErrorsOf(done.error).name : undefined;
    setError(problem);
    const created = problem ? undefined : outcome(done);
    if (created) {
      setName('');
      onCreated(created);
    }
  };
  return (
    <Panel title={text('passwords.create')}>
      <form noValidate onSubmit={(event) => void submit(event)}>
        <Flex gap={2} alignItems="end" wrap="wrap">
          <Field.Root name="name" required error={error} minWidth="28rem">
            <Field.Label>{text('passwords.name')}</Field.Label>
            <TextInput
              value={name}
              maxLength={100}
              placeholder={text('passwords.name.example')}
              onChange={(event) => setName(event.currentTarget.value)}
            />
            <Field.Error />
          </Field.Root>
          <Button type="submit" size="L" startIcon={<Plus />} loading={isLoading}>
            {text('passwords.create.submit')}
          </Button>
        </Flex>
      </form>
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
