import { Flex, Tabs } from '@strapi/design-system';
import { Layouts, Page, useQueryParams } from '@strapi/strapi/admin';
import { requestedPage } from '../../components/pager';
import { useAccess } from '../../permissions';
import { useText } from '../../utils/text';
import { AcceptedList } from './accepted-list';
import type { ListQuery } from './list-query';
import { RefusedList } from './refused-list';
import { TillFilter } from './till-filter';

const EventListPage = () => {
  const text = useText();
  const { can } = useAccess();
  const [{ query }, setQuery] = useQueryParams<ListQuery>();
  const seesRefused = can('connections.read');
  const tab = seesRefused && query.tab === 'refused' ? 'refused' : 'accepted';
  const connection = query.connection ? Number(query.connection) : undefined;
  return (
    <Page.Main>
      <Page.Title>{text('nav.tillRecords')}</Page.Title>
      <Layouts.Header title={text('nav.tillRecords')} subtitle={text('event.subtitle')} />
      <Layouts.Content>
        <Tabs.Root
          variant="simple"
          value={tab}
          onValueChange={(value) => setQuery({ tab: value, page: '1' }, 'push', true)}
        >
          <Tabs.List aria-label={text('nav.tillRecords')}>
            <Tabs.Trigger value="accepted">{text('event.tab.accepted')}</Tabs.Trigger>
            {seesRefused && (
              <Tabs.Trigger value="refused">{text('event.tab.refused')}</Tabs.Trigger>
            )}
          </Tabs.List>
          <Tabs.Content value="accepted">
            <AcceptedList />
          </Tabs.Content>
          <Tabs.Content value="refused">
            <Flex paddingTop={4} paddingBottom={4}>
              <TillFilter />
            </Flex>
            <RefusedList connection={connection} {...requestedPage(query, 20)} />
          </Tabs.Content>
        </Tabs.Root>
      </Layouts.Content>
    </Page.Main>
  );
};

export default EventListPage;
