import { BackButton, Layouts, Page } from '@strapi/strapi/admin';
import { useNavigate } from 'react-router-dom';
import { useAccess } from '../../permissions';
import { useCreateWebhook } from '../../services/webhooks';
import { fieldErrorsOf, useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';
import { WebhookForm } from './webhook-form';

const BLANK = { name: '', url: '', events: [], active: true };

const WebhookCreatePage = () => {
  const text = useText();
  const navigate = useNavigate();
  const outcome = useOutcome();
  const { can } = useAccess();
  const [create] = useCreateWebhook();
  if (!can('webhooks.create')) return <Page.NoPermissions />;
  return (
    <Page.Main>
      <Page.Title>{text('webhook.create')}</Page.Title>
      <Layouts.Header
        title={text('webhook.create')}
        subtitle={text('webhook.create.subtitle')}
        navigationAction={<BackButton fallback="/plugins/switchboard/webhooks" />}
      />
      <Layouts.Content>
        <WebhookForm
          initial={BLANK}
          submitLabel={text('webhook.create.submit')}
          onSave={async (values) => {
            const done = await create(values);
            const fields = 'error' in done ? fieldErrorsOf(done.error) : {};
            if (Object.keys(fields).length > 0) return fields;
            const created = outcome(done, 'webhook.created');
            if (created) {
              navigate(`/plugins/switchboard/webhooks/${created.id}?tab=settings`, {
                replace: true,
              });
            }
            return {};
          }}
        />
      </Layouts.Content>
    </Page.Main>
  );
};

export default WebhookCreatePage;
