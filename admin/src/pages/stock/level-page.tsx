import { Flex, Typography } from '@strapi/design-system';
import { BackButton, Layouts, Page, useQueryParams } from '@strapi/strapi/admin';
import { useState } from 'react';
import { useParams } from 'react-router-dom';
import type { Level } from '../../../../shared/contracts/stock';
import { Loaded } from '../../components/page-states';
import { Panel } from '../../components/panel';
import { RowLink } from '../../components/row-link';
import { useAccess } from '../../permissions';
import { type TermFilter, useLevel } from '../../services/stock';
import { usePolling } from '../../utils/polling';
import { useText } from '../../utils/text';
import { ChangeLevel } from './change-level';
import { Explanation } from './explanation';
import { LowMark } from './low-mark';
import { MovementList } from './movement-list';

const REFRESH_MS = 10_000;
const LIST = '/plugins/switchboard/stock';

const Content = ({ level }: { level: Level }) => {
  const text = useText();
  const { can } = useAccess();
  const [, setQuery] = useQueryParams();
  const [term, setTerm] = useState<TermFilter | null>(null);
  const choose = (filter: TermFilter | null): void => {
    setTerm(filter);
    setQuery({ page: '1' });
  };
  const title = text('level.title', { sku: level.sku, location: level.location.name });
  return (
    <Page.Main>
      <Page.Title>{title}</Page.Title>
      <Layouts.Header
        title={title}
        subtitle={level.name ?? undefined}
        navigationAction={<BackButton fallback={LIST} />}
        primaryAction={
          can('stock.manage') && (
            <Flex gap={2} wrap="wrap">
              <LowMark level={level} />
              <ChangeLevel level={level} />
            </Flex>
          )
        }
      />
      <Layouts.Content>
        <Flex direction="column" alignItems="stretch" gap={6}>
          <Panel
            title={text('level.explain')}
            actions={
              <RowLink to={`${LIST}/items/${level.item_id}`}>{text('level.allLocations')}</RowLink>
            }
          >
            <Typography variant="alpha" tag="p">
              {level.quantity}
            </Typography>
            <Explanation
              levelId={level.id}
              refreshMs={REFRESH_MS}
              chosen={term}
              onChoose={choose}
            />
          </Panel>
          <MovementList
            levelId={level.id}
            refreshMs={REFRESH_MS}
            filter={term}
            onClear={() => choose(null)}
          />
        </Flex>
      </Layouts.Content>
    </Page.Main>
  );
};

const LevelPage = () => {
  const { id } = useParams();
  const query = useLevel(Number(id), { pollingInterval: usePolling(REFRESH_MS) });
  return <Loaded query={query}>{(level) => <Content level={level} />}</Loaded>;
};

export default LevelPage;
