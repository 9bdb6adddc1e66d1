import { Button, Flex, Typography } from '@strapi/design-system';
import { Archive } from '@strapi/icons';
import { useParams } from 'react-router-dom';
import type { Item, ItemDetail, Level } from '../../../../shared/contracts/stock';
import { ActionMenu } from '../../components/action-menu';
import { type Column, DataTable } from '../../components/data-table';
import { FormPage } from '../../components/form-page';
import { Loaded } from '../../components/page-states';
import { Panel } from '../../components/panel';
import { RowLink } from '../../components/row-link';
import { Time } from '../../components/time';
import { useAccess } from '../../permissions';
import {
  useArchiveItem,
  useItem,
  useItemLevels,
  useUpdateItem,
} from '../../services/stock-by-hand';
import { useOutcome } from '../../utils/errors';
import { usePolling } from '../../utils/polling';
import { useText } from '../../utils/text';
import { ChangeLevel } from './change-level';
import { ItemForm } from './item-form';
import { LevelMark } from './level-mark';
import { LowMark } from './low-mark';

const REFRESH_MS = 5000;
const LIST = '/plugins/switchboard/stock';

const useColumns = (item: Item): Column<Level>[] => {
  const text = useText();
  const { can } = useAccess();
  const isLow = ({ quantity, low_at: own }: Level) => quantity <= (own ?? item.low_at);
  return [
    { id: 'location', label: text('stock.location'), cell: ({ location }) => location.name },
    {
      id: 'quantity',
      label: text('stock.quantity'),
      cell: (level) => (
        <Flex gap={2}>
          <RowLink
            to={`${LIST}/levels/${level.id}`}
            label={text('stock.levelOf', {
              sku: level.sku,
              location: level.location.name,
              quantity: level.quantity,
            })}
          >
            {String(level.quantity)}
          </RowLink>
          <LevelMark level={{ quantity: level.quantity, low: isLow(level) }} />
        </Flex>
      ),
    },
    {
      id: 'low',
      label: text('stock.item.low'),
      cell: ({ low_at: own }) =>
        own === null ? (
          <Typography textColor="neutral600">
            {text('level.low.item', { n: item.low_at })}
          </Typography>
        ) : (
          own
        ),
    },
    {
      id: 'counted',
      label: text('stock.counted'),
      cell: ({ last_counted_at: at }) => (at ? <Time at={at} /> : '–'),
    },
    ...(can('stock.manage')
      ? [
          {
            id: 'actions',
            label: text('table.actions'),
            hiddenLabel: true,
            cell: (level: Level) => (
              <Flex gap={1} justifyContent="flex-end">
                <LowMark level={level} compact />
                <ChangeLevel level={level} compact />
              </Flex>
            ),
          },
        ]
      : []),
  ];
};

/** Archives an item from a menu, or takes it back. */
const Archiving = ({ item }: { item: Item }) => {
  const text = useText();
  const outcome = useOutcome();
  const [archive] = useArchiveItem();
  const [update, { isLoading }] = useUpdateItem();
  if (item.archived_at !== null) {
    return (
      <Button
        variant="secondary"
        loading={isLoading}
        onClick={() =>
          void update({ id: item.id, archived: false }).then((done) =>
            outcome(done, 'item.restored')
          )
        }
      >
        {text('item.restore')}
      </Button>
    );
  }
  return (
    <ActionMenu
      actions={[
        {
          icon: <Archive />,
          label: text('item.archive'),
          question: text('item.archive.question', { sku: item.sku }),
          isDangerous: true,
          onConfirm: async () => outcome(await archive(item.id), 'item.archived'),
        },
      ]}
    />
  );
};

const Content = ({ item }: { item: ItemDetail }) => {
  const text = useText();
  const { can } = useAccess();
  const levels = useItemLevels(item.id, { pollingInterval: usePolling(REFRESH_MS) });
  const columns = useColumns(item);
  const total = levels.data?.reduce((sum, { quantity }) => sum + quantity, 0);
  return (
    <FormPage
      title={item.sku}
      subtitle={item.name ?? undefined}
      fallback={LIST}
      actions={can('stock.manage') && <Archiving item={item} />}
    >
      <Flex direction="column" alignItems="stretch" gap={6}>
        {item.archived_at !== null && (
          <Typography role="status" textColor="neutral800">
            {text('item.isArchived')}
          </Typography>
        )}
        {item.product && (
          <Flex gap={2}>
            <Typography textColor="neutral600">{text('item.product')}</Typography>
            <RowLink
              to={`/content-manager/collection-types/${item.product.content_type}/${encodeURIComponent(item.product.document_id)}`}
            >
              {item.product.label}
            </RowLink>
          </Flex>
        )}
        <ItemForm item={item} disabled={!can('stock.manage')} />
        <Panel title={text('stock.grid')}>
          {total !== undefined && (
            <Typography fontWeight="bold">{text('item.total', { n: total })}</Typography>
          )}
          <Loaded query={levels}>
            {(rows) => (
              <DataTable
                label={text('stock.grid')}
                columns={columns}
                rows={rows}
                rowId={({ id }) => id}
                empty={{ text: text('item.noLevels') }}
              />
            )}
          </Loaded>
        </Panel>
      </Flex>
    </FormPage>
  );
};

const ItemPage = () => {
  const { id } = useParams();
  const item = useItem(Number(id));
  return <Loaded query={item}>{(data) => <Content item={data} />}</Loaded>;
};

export default ItemPage;
