import { Flex, Tabs, Typography } from '@strapi/design-system';
import { Trash } from '@strapi/icons';
import { useQueryParams } from '@strapi/strapi/admin';
import { useNavigate, useParams } from 'react-router-dom';
import type { ManagedWebhook } from '../../../../shared/contracts/webhooks';
import { ActionMenu } from '../../components/action-menu';
import { FormPage } from '../../components/form-page';
import { Panel } from '../../components/panel';
import { HealthChart, HealthCountsLine } from '../../components/health-chart';
import { Loaded } from '../../components/page-states';
import { useAccess } from '../../permissions';
import {
  useDeleteWebhook,
  useHealth,
  useUpdateWebhook,
  useWebhook,
  useLookUpWebhook,
} from '../../services/webhooks';
import { type Saved, useOutcome, useSaved } from '../../utils/errors';
import { usePolling } from '../../utils/polling';
import { useText } from '../../utils/text';
import { DeliveryLog } from '../deliveries/delivery-log';
import { FiguresPanel } from '../overview/figures-panel';
import { HealthBadge } from './cells';
import { conflictOf, haveBothChanged, readSince, useConflict } from './changed-meanwhile';
import { headersOf } from './header-rows';
import { MissedPanel } from './missed-panel';
import { SecretPanel } from './secret-panel';
import { SwitchOffBanner } from './switch-off-banner';
import { useWaitingChoice } from './switching-on';
import { TestPanel } from './test-panel';
import { WebhookForm } from './webhook-form';

/** A delivery may switch the webhook off while its page is open. */
const REFRESH_MS = 10_000;

const TABS = ['deliveries', 'missed', 'statistics', 'settings'] as const;

interface PageQuery {
  tab?: string;
}

const Health = ({ webhook }: { webhook: ManagedWebhook }) => {
  const text = useText();
  const { data } = useHealth(webhook.id, { pollingInterval: usePolling(REFRESH_MS) });
  return (
    <Panel title={text('health.title')}>
      <HealthBadge health={webhook.health} />
      {data && (
        <>
          <HealthChart buckets={data.buckets} counts={data.totals} height={48} />
          <HealthCountsLine counts={data.totals} />
        </>
      )}
    </Panel>
  );
};

const UNSAVED: Saved = { saved: false, problems: {} };

const Settings = ({ webhook }: { webhook: ManagedWebhook }) => {
  const text = useText();
  const savedOr = useSaved();
  const { can } = useAccess();
  const [update] = useUpdateWebhook();
  const { ask, question } = useWaitingChoice();
  const conflict = useConflict();
  const [lookUp] = useLookUpWebhook();
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
          basedOn: webhook.updated_at,
        }}
        webhookId={id}
        disabled={!can('webhooks.update')}
        submitLabel={text('action.save')}
        onSave={async ({ basedOn }, changed, before) => {
          const waiting = changed.active ? await ask(id) : undefined;
          if (waiting === null) return UNSAVED;
          const said = waiting === 'discard' ? 'banner.discarded' : 'webhook.saved';
          const done = await update({ id, ...changed, waiting, if_updated_at: basedOn });
          const conflicting = 'error' in done ? conflictOf(done.error) : undefined;
          if (!conflicting) return savedOr(done, said);
          const latest = await readSince(async () => (await lookUp(id)).data, conflicting.at);
          const isOverwriting = !latest || haveBothChanged(changed, before, latest);
          if (isOverwriting && !(await conflict.ask(conflicting))) return UNSAVED;
          return savedOr(await update({ id, ...changed, waiting }), said);
        }}
      />
      {question}
      {conflict.dialog}
    </Flex>
  );
};

const Content = ({ webhook }: { webhook: ManagedWebhook }) => {
  const text = useText();
  const navigate = useNavigate();
  const outcome = useOutcome();
  const { can } = useAccess();
  const [remove] = useDeleteWebhook();
  const [{ query }, setQuery] = useQueryParams<PageQuery>();
  const mayReplay = can('webhooks.update') && can('journal.read');
  const tabs = TABS.filter((one) => one !== 'missed' || mayReplay);
  const tab = tabs.find((one) => one === query.tab) ?? 'deliveries';
  return (
    <FormPage
      title={webhook.name}
      subtitle={
        <Typography textColor="neutral600" ellipsis title={webhook.url} tag="p">
          {webhook.url}
        </Typography>
      }
      fallback="/plugins/switchboard/webhooks"
      actions={
        can('webhooks.delete') && (
          <ActionMenu
            actions={[
              {
                icon: <Trash />,
                label: text('action.delete'),
                question: text('webhook.delete.question', { name: webhook.name }),
                isDangerous: true,
                onConfirm: async () => {
                  const done = await remove(webhook.id);
                  outcome(done, 'webhook.deleted');
                  if (!('error' in done)) navigate('/plugins/switchboard/webhooks');
                },
              },
            ]}
          />
        )
      }
    >
      <Flex direction="column" alignItems="stretch" gap={6}>
        <SwitchOffBanner webhook={webhook} />
        <Tabs.Root
          variant="simple"
          value={tab}
          onValueChange={(value) => setQuery({ tab: value }, 'push', true)}
        >
          <Tabs.List aria-label={webhook.name} style={{ flexWrap: 'wrap' }}>
            {tabs.map((one) => (
              <Tabs.Trigger key={one} value={one}>
                {text(`webhook.tab.${one}`)}
              </Tabs.Trigger>
            ))}
          </Tabs.List>
          <Tabs.Content value="deliveries">
            <Flex direction="column" alignItems="stretch" gap={6} paddingTop={6}>
              <Health webhook={webhook} />
              {can('webhooks.update') && <TestPanel webhook={webhook} />}
              <DeliveryLog webhook={webhook} />
            </Flex>
          </Tabs.Content>
          <Tabs.Content value="missed">
            <Flex direction="column" alignItems="stretch" paddingTop={6}>
              {mayReplay && <MissedPanel webhook={webhook} />}
            </Flex>
          </Tabs.Content>
          <Tabs.Content value="statistics">
            <Flex direction="column" alignItems="stretch" paddingTop={6}>
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
    </FormPage>
  );
};

const WebhookPage = () => {
  const { id } = useParams();
  const webhook = useWebhook(Number(id), { pollingInterval: usePolling(REFRESH_MS) });
  return <Loaded query={webhook}>{(data) => <Content webhook={data} />}</Loaded>;
};

export default WebhookPage;
