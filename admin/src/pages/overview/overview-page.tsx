import { Flex } from '@strapi/design-system';
import { Layouts, Page, useStrapiApp } from '@strapi/strapi/admin';
import { Panel } from '../../components/panel';
import { useAccess } from '../../permissions';
import { PLUGIN_ID } from '../../pluginId';
import { useModules } from '../../services/settings';
import { useText } from '../../utils/text';
import { FiguresPanel } from './figures-panel';
import { FirstSteps } from './first-steps';
import { NeedList } from './need-list';
import { useNeeds } from './use-needs';

/** The site's own content, above everything else on this page. */
const OwnOfTheSite = () => {
  const getPlugin = useStrapiApp('OverviewPage', (state) => state.getPlugin);
  const components = getPlugin(PLUGIN_ID)?.getInjectedComponents('overview', 'top') ?? [];
  return components.map(({ name, Component }) => <Component key={name} />);
};

const OverviewPage = () => {
  const text = useText();
  const { can } = useAccess();
  const { isLoading, isUnknown, isPartial, needs, more } = useNeeds();
  const modules = useModules();
  const isOn = modules.data?.data.some(({ id, enabled }) => id === 'webhooks' && enabled) ?? false;
  if (isLoading) return <Page.Loading />;
  return (
    <Page.Main>
      <Page.Title>{text('nav.overview')}</Page.Title>
      <Layouts.Header title={text('nav.overview')} subtitle={text('overview.subtitle')} />
      <Layouts.Content>
        <Flex direction="column" alignItems="stretch" gap={6}>
          <OwnOfTheSite />
          <FirstSteps />
          <Panel title={text('needs.title')}>
            {isUnknown && needs.length === 0 ? (
              text('error.load')
            ) : (
              <NeedList needs={needs} well="needs.none" isPartial={isPartial} beyond={more} />
            )}
          </Panel>
          {can('webhooks.read') && isOn && <FiguresPanel />}
        </Flex>
      </Layouts.Content>
    </Page.Main>
  );
};

export default OverviewPage;
