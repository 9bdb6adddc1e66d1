import { useState } from 'react';
import { useNavigate } from 'react-router-dom';
import type { ConnectionWithSecret } from '../../../../shared/contracts/pos';
import { FormPage } from '../../components/form-page';
import { useCreateConnection } from '../../services/pos';
import { useSaved } from '../../utils/errors';
import { useText } from '../../utils/text';
import { BLANK_CONNECTION, ConnectionForm } from './connection-form';
import { Credentials } from './credentials';

const ConnectionCreatePage = () => {
  const text = useText();
  const navigate = useNavigate();
  const savedOr = useSaved();
  const [create] = useCreateConnection();
  // The secret lives in this page's memory alone: a reload forgets it.
  const [created, setCreated] = useState<ConnectionWithSecret>();
  return (
    <FormPage
      title={text('connection.create')}
      subtitle={text('connection.create.subtitle')}
      fallback="/plugins/switchboard/tills"
    >
      <ConnectionForm
        initial={BLANK_CONNECTION}
        withMode
        submitLabel={text('connection.create.submit')}
        onSave={async (values) => {
          const done = await create(values);
          if (!('error' in done)) setCreated(done.data);
          return savedOr(done, 'connection.created');
        }}
      />
      {created && (
        <Credentials
          connection={created}
          secret={created.secret}
          onDone={() => navigate(`/plugins/switchboard/tills/${created.id}`, { replace: true })}
        />
      )}
    </FormPage>
  );
};

export default ConnectionCreatePage;
