import { useState } from 'react';
import { useNavigate } from 'react-router-dom';
import type { WebhookWithSecret } from '../../../../shared/contracts/webhooks';
import { FormPage } from '../../components/form-page';
import { ShownOnce } from '../../components/shown-once';
import { useAccess } from '../../permissions';
import { useCreateWebhook } from '../../services/webhooks';
import { useSaved } from '../../utils/errors';
import { useText } from '../../utils/text';
import { WebhookForm, type WebhookValues } from './webhook-form';

const BLANK: WebhookValues = {
  name: '',
  url: '',
  events: [],
  active: true,
  payload: 'full',
  filter: null,
  rate_per_second: null,
  concurrency: null,
  ordering: 'none',
  headers: {},
  basedOn: '',
};
const LIST = '/plugins/switchboard/webhooks';

const WebhookCreatePage = () => {
  const text = useText();
  const navigate = useNavigate();
  const savedOr = useSaved();
  const { can } = useAccess();
  const [create] = useCreateWebhook();
  const [created, setCreated] = useState<WebhookWithSecret>();
  const open = (id: number): void => {
    navigate(can('webhooks.read') ? `${LIST}/${id}?tab=settings` : LIST, { replace: true });
  };
  return (
    <FormPage
      title={text('webhook.create')}
      subtitle={text('webhook.create.subtitle')}
      fallback={LIST}
    >
      <WebhookForm
        initial={BLANK}
        isNew
        submitLabel={text('webhook.create.submit')}
        onSave={async ({ basedOn: _, ...values }) => {
          const done = await create(values);
          if (!('error' in done)) {
            // Its own page hides the secret from users without the permission to reveal it.
            if (can('webhooks.reveal')) open(done.data.id);
            else setCreated(done.data);
          }
          return savedOr(done, 'webhook.created');
        }}
      />
      {created && (
        <ShownOnce
          title={created.name}
          values={[{ label: text('secret.title'), value: created.secret ?? '' }]}
          onDone={() => open(created.id)}
        />
      )}
    </FormPage>
  );
};

export default WebhookCreatePage;
