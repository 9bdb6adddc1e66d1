import { Typography } from '@strapi/design-system';
import { useState } from 'react';
import type { Transfer } from '../../../../shared/contracts/stock';
import { type Column, DataTable } from '../../components/data-table';
import { Loaded } from '../../components/page-states';
import { Panel } from '../../components/panel';
import { RowLink } from '../../components/row-link';
import { Steps } from '../../components/steps';
import { Time } from '../../components/time';
import { useTransfers } from '../../services/stock-by-hand';
import { useText } from '../../utils/text';
import { MovementReason } from '../events/movement-table';

const PER_PAGE = 20;

/** The lines of a transfer, with a note if a later count overrides one side. */
const Lines = ({ transfer }: { transfer: Transfer }) => {
  const reasons = new Set(
    transfer.lines.flatMap(({ movements }) =>
      movements.flatMap(({ reason }) => (reason === null ? [] : [reason]))
    )
  );
  return (
    <>
      {transfer.lines.map(({ item, quantity }) => (
        <Typography key={item.id} tag="div">
          {quantity} ×{' '}
          <RowLink to={`/plugins/switchboard/stock/items/${item.id}`}>{item.sku}</RowLink>
        </Typography>
      ))}
      {[...reasons].map((reason) => (
        <MovementReason key={reason} reason={reason} />
      ))}
    </>
  );
};

/** Transfers that were made, newest first. */
export const TransferList = () => {
  const text = useText();
  const [page, setPage] = useState(1);
  const transfers = useTransfers({ page, perPage: PER_PAGE });
  const columns: Column<Transfer>[] = [
    { id: 'id', label: text('transfer.number'), cell: ({ id }) => id },
    {
      id: 'at',
      label: text('movement.at'),
      cell: ({ occurred_at: at }) => <Time at={at} />,
    },
    { id: 'from', label: text('transfer.from'), cell: ({ from }) => from.name },
    { id: 'to', label: text('transfer.to'), cell: ({ to }) => to.name },
    {
      id: 'lines',
      label: text('transfer.lines'),
      cell: (transfer) => <Lines transfer={transfer} />,
    },
    { id: 'by', label: text('movement.by'), cell: ({ made_by: by }) => by ?? '–' },
  ];
  return (
    <Panel title={text('transfer.made')}>
      <Loaded query={transfers}>
        {({ data, meta }) => (
          <>
            <DataTable
              label={text('transfer.made')}
              columns={columns}
              rows={data}
              rowId={({ id }) => id}
              empty={{ text: text('transfer.none') }}
            />
            <Steps page={page} pageCount={meta.pagination.page_count} onChange={setPage} />
          </>
        )}
      </Loaded>
    </Panel>
  );
};
