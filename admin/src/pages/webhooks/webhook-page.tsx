import { Flex, Tabs, Typography } from '@strapi/design-system';
import { Trash } from '@strapi/icons';
import { BackButton, Layouts, Page, useQueryParams } from '@strapi/strapi/admin';
import { useNavigate, useParams } from 'react-router-dom';
import type { WebhookWithSecret } from '../../../../shared/contracts/webhooks';
import { ConfirmButton } from '../../components/confirm-button';
import { Panel } from '../../components/panel';
import { HealthChart, HealthCountsLine } from '../../components/health-chart';
import { Loaded } from '../../components/page-states';
import { useAccess } from '../../permissions';
import { useDeleteWebhook, useHealth, useUpdateWebhook, useWebhook } from '../../services/webhooks';
import { useOutcome, useSaved } from '../../utils/errors';
import { useText } from '../../utils/text';
import { DeliveryLog } from '../deliveries/delivery-log';
import { FiguresPanel } from '../overview/figures-panel';
import { HealthBadge } from './cells';
import { headersOf } from './header-rows';
import { MissedPanel } from './missed-panel';
import { SecretPanel } from './secret-panel';
import { SwitchOffBanner } from './switch-off-banner';
import { useWaitingChoice } from './switching-on';
import { TestPanel } from './test-panel';
import { WebhookForm } from './webhook-form';

/** A delivery may switch the webhook off while its page is open. */
const REFRESH_MS = 10_000;

interface PageQuery {
  tab?: string;
}

const Health = ({ webhook }: { webhook: WebhookWithSecret }) => {
  const text = useText();
  const health = useHealth(undefined, { pollingInterval: REFRESH_MS });
  const own = health.data?.webhooks.find((one) => one.webhook_id === webhook.id);
  return (
    <Panel title={text('health.title')}>
      <HealthBadge health={webhook.health} />
      {own && (
        <>
          <HealthChart buckets={own.buckets} counts={own} height={48} />
          <HealthCountsLine counts={own} />
        </>
      )}
    </Panel>
  );
};

const Settings = ({ webhook }: { webhook: WebhookWithSecret }) => {
  const text = useText();
  const savedOr = useSaved();
  const { can } = useAccess();
  const [update] = useUpdateWebhook();
  const { ask, question } = useWaitingChoice();
  const { id, name, url, events, active, payload, filter } = webhook;
  const { rate_per_second, concurrency, ordering } = webhook;
  return (
    <Flex direction="column" alignItems="stretch" gap={6}>
      <SecretPanel webhook={webhook} />
      <WebhookForm
        key={id}
        initial={{
          name,
          url,
          events,
          active,
          payload,
          filter,
          rate_per_second,
          concurrency,
          ordering,
          headers: headersOf(webhook),
        }}
        webhookId={id}
        disabled={!can('webhooks.update')}
        submitLabel={text('action.save')}
        // Fields that were not edited may have been changed elsewhere meanwhile, and stay so.
        onSave={async (_values, changed) => {
          const waiting = changed.active ? await ask(id) : undefined;
          if (waiting === null) return { saved: false, problems: {} };
          const said = waiting === 'discard' ? 'banner.discarded' : 'webhook.saved';
          return savedOr(await update({ id, ...changed, waiting }), said);
        }}
      />
      {question}
    </Flex>
  );
};

const Content = ({ webhook }: { webhook: WebhookWithSecret }) => {
  const text = useText();
  const navigate = useNavigate();
  const outcome = useOutcome();
  const { can } = useAccess();
  const [remove] = useDeleteWebhook();
  const [{ query }, setQuery] = useQueryParams<PageQuery>();
  const tab = query.tab === 'settings' ? 'settings' : 'deliveries';
  return (
    <Page.Main>
      <Page.Title>{webhook.name}</Page.Title>
      <Layouts.Header
        title={webhook.name}
        subtitle={
          <Typography textColor="neutral600" style={{ overflowWrap: 'anywhere' }}>
            {webhook.url}
          </Typography>
        }
        navigationAction={<BackButton fallback="/plugins/switchboard/webhooks" />}
        primaryAction={
          can('webhooks.delete') && (
            <ConfirmButton
              icon={<Trash />}
              label={text('action.delete')}
              question={text('webhook.delete.question', { name: webhook.name })}
              onConfirm={async () => {
                const done = await remove(webhook.id);
                outcome(done, 'webhook.deleted');
                if (!('error' in done)) navigate('/plugins/switchboard/webhooks');
              }}
            />
          )
        }
      />
      <Layouts.Content>
        <Flex direction="column" alignItems="stretch" gap={6}>
          <SwitchOffBanner webhook={webhook} />
          <Tabs.Root
            variant="simple"
            value={tab}
            onValueChange={(value) => setQuery({ tab: value }, 'push', true)}
          >
            <Tabs.List aria-label={webhook.name}>
              <Tabs.Trigger value="deliveries">{text('webhook.tab.deliveries')}</Tabs.Trigger>
              <Tabs.Trigger value="settings">{text('webhook.tab.settings')}</Tabs.Trigger>
            </Tabs.List>
            <Tabs.Content value="deliveries">
              <Flex direction="column" alignItems="stretch" gap={6} paddingTop={6}>
                <Health webhook={webhook} />
                {can('webhooks.update') && <TestPanel webhook={webhook} />}
                <DeliveryLog webhook={webhook} />
                {can('webhooks.update') && can('journal.read') && <MissedPanel webhook={webhook} />}
                <FiguresPanel webhook={webhook.id} />
              </Flex>
            </Tabs.Content>
            <Tabs.Content value="settings">
              <Flex direction="column" alignItems="stretch" paddingTop={6}>
                <Settings webhook={webhook} />
              </Flex>
            </Tabs.Content>
          </Tabs.Root>
        </Flex>
      </Layouts.Content>
    </Page.Main>
  );
};

const WebhookPage = () => {
  const { id } = useParams();
  const webhook = useWebhook(Number(id), { pollingInterval: REFRESH_MS });
  return <Loaded query={webhook}>{(data) => <Content webhook={data} />}</Loaded>;
};

export default WebhookPage;
