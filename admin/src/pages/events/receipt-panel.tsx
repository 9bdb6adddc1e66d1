import { Flex, Typography } from '@strapi/design-system';
import type { ReactNode } from 'react';
import type { PosEventDetail, RelatedRecord } from '../../../../shared/contracts/pos';
import { type Column, DataTable } from '../../components/data-table';
import { DefinitionList } from '../../components/definition-list';
import { useMoney } from '../../components/money';
import { Panel } from '../../components/panel';
import { Pill } from '../../components/pill';
import { RecordLink } from '../../components/record-link';
import { RowLink } from '../../components/row-link';
import { useText } from '../../utils/text';
import { comesTo, type Receipt, type ReceiptLine, readReceipt } from './receipt';

interface NumberedLine extends ReceiptLine {
  index: number;
}

interface LinesProps {
  event: PosEventDetail;
  receipt: Receipt;
}

/** Marks a line that waits for its item or is ignored. */
const LineMark = ({ event, index }: { event: PosEventDetail; index: number }) => {
  const text = useText();
  if (event.waiting.some(({ line }) => line === index)) {
    return <Pill variant="warning">{text('receipt.unknown')}</Pill>;
  }
  return event.ignored.includes(index) ? <Pill>{text('receipt.ignored')}</Pill> : null;
};

const useLineColumns = ({ event, receipt }: LinesProps): Column<NumberedLine>[] => {
  const text = useText();
  const money = useMoney();
  const { currency } = comesTo(receipt, event.money);
  const isCount = event.kind === 'inventory';
  const shown = (amount: number | null): string =>
    amount === null || currency === null ? '–' : money(amount, currency);
  return [
    {
      id: 'item',
      label: text('receipt.item'),
      cell: ({ sku, gtin, name, index }) => (
        <Flex gap={2} wrap="wrap">
          <Typography textColor="neutral800" style={{ overflowWrap: 'anywhere' }}>
            {[name, sku ?? gtin].filter((part) => part !== null).join(' · ')}
          </Typography>
          <LineMark event={event} index={index} />
        </Flex>
      ),
    },
    {
      id: 'quantity',
      label: text('receipt.quantity'),
      cell: ({ quantity }) =>
        receipt.mode === 'relative' && quantity > 0 ? `+${quantity}` : quantity,
    },
    ...(isCount
      ? [
          {
            id: 'reason',
            label: text('movement.reason'),
            cell: ({ reason }: NumberedLine) => reason ?? '–',
          },
        ]
      : [
          {
            id: 'price',
            label: text('receipt.price'),
            cell: ({ unitPrice }: NumberedLine) => shown(unitPrice),
          },
          {
            id: 'sum',
            label: text('receipt.sum'),
            cell: ({ unitPrice, quantity }: NumberedLine) =>
              shown(unitPrice === null ? null : unitPrice * quantity),
          },
        ]),
  ];
};

const RecordLinks = ({ records }: { records: readonly RelatedRecord[] }) => (
  <Flex gap={2} wrap="wrap">
    {records.map(({ id, external_id: external }) => (
      <RowLink key={id} to={`/plugins/switchboard/records/${id}`}>
        {external}
      </RowLink>
    ))}
  </Flex>
);

const Customer = ({ event, receipt }: LinesProps) => {
  const text = useText();
  const { name, email, phone } = receipt.customer ?? { name: null, email: null, phone: null };
  const said = [name, email, phone].filter((part) => part !== null).join(', ');
  if (!event.contact) return <>{said || '–'}</>;
  return (
    <RecordLink
      subject={{
        type: 'contact',
        id: event.contact.id,
        label: said || text('receipt.contact'),
      }}
    />
  );
};

const useFacts = ({ event, receipt }: LinesProps): (readonly [string, ReactNode])[] => {
  const text = useText();
  const { kind, sale, refunds, location_ref: location } = event;
  const facts: (readonly [string, ReactNode] | false)[] = [
    kind === 'inventory' &&
      receipt.mode !== null && [text('receipt.mode'), text(`receipt.mode.${receipt.mode}`)],
    kind === 'refund' && [
      text('receipt.sale'),
      sale ? <RecordLinks key="sale" records={[sale]} /> : (receipt.saleId ?? '–'),
    ],
    kind === 'refund' && [
      text('receipt.restock'),
      text(receipt.restock ? 'receipt.restock.yes' : 'receipt.restock.no'),
    ],
    receipt.reason !== null && [text('movement.reason'), receipt.reason],
    (kind === 'sale' || event.contact !== null) && [
      text('receipt.customer'),
      <Customer key="customer" event={event} receipt={receipt} />,
    ],
    receipt.cashier !== null && [text('receipt.cashier'), receipt.cashier],
    location !== null && [text('stock.location'), location],
    refunds.length > 0 && [
      text('receipt.refunds'),
      <RecordLinks key="refunds" records={refunds} />,
    ],
  ];
  return facts.filter((fact) => fact !== false);
};

const Total = ({ event, receipt }: LinesProps) => {
  const text = useText();
  const money = useMoney();
  const { currency, total } = comesTo(receipt, event.money);
  if (currency === null || total === null) return null;
  return (
    <Flex justifyContent="flex-end" gap={4}>
      <Typography variant="delta" tag="p">
        {text('receipt.total', { total: money(total, currency) })}
      </Typography>
    </Flex>
  );
};

type ClosedSums = Receipt['totals'][number];

const ClosingTotals = ({ totals }: Pick<Receipt, 'totals'>) => {
  const text = useText();
  const money = useMoney();
  const columns: Column<ClosedSums>[] = [
    { id: 'currency', label: text('days.currency'), cell: ({ currency }) => currency },
    { id: 'sales', label: text('days.sales'), cell: ({ sales }) => sales.count },
    {
      id: 'sold',
      label: text('days.salesTotal'),
      cell: ({ sales, currency }) => money(sales.total, currency),
    },
    { id: 'refunds', label: text('days.refunds'), cell: ({ refunds }) => refunds.count },
    {
      id: 'refunded',
      label: text('days.refundsTotal'),
      cell: ({ refunds, currency }) => money(refunds.total, currency),
    },
  ];
  return (
    <DataTable
      label={text('receipt.closing')}
      columns={columns}
      rows={totals}
      rowId={({ currency }) => currency}
      empty={{ text: text('takings.nothing') }}
    />
  );
};

/** A record as a receipt: its lines, what it comes to, and who was there. */
export const ReceiptPanel = ({ event }: { event: PosEventDetail }) => {
  const text = useText();
  const receipt = readReceipt(event.kind, event.body);
  if (!receipt) return null;
  return <ReadReceipt event={event} receipt={receipt} label={text('receipt.title')} />;
};

const ReadReceipt = ({ event, receipt, label }: LinesProps & { label: string }) => {
  const text = useText();
  const columns = useLineColumns({ event, receipt });
  const facts = useFacts({ event, receipt });
  const lines = receipt.lines.map((line, index) => ({ ...line, index }));
  return (
    <Panel title={label}>
      {event.kind === 'closing' && <ClosingTotals totals={receipt.totals} />}
      {lines.length > 0 && (
        <DataTable
          label={text('receipt.lines')}
          columns={columns}
          rows={lines}
          rowId={({ index }) => index}
          empty={{ text: '' }}
        />
      )}
      {event.kind === 'refund' && lines.length === 0 && (
        <Typography>{text('receipt.wholeSale')}</Typography>
      )}
      <Total event={event} receipt={receipt} />
      {facts.length > 0 && <DefinitionList rows={facts} />}
    </Panel>
  );
};
