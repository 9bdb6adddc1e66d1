import type { PosEventDetail, RecordHandling } from '../../../../shared/contracts/pos';
import { type Column, DataTable } from '../../components/data-table';
import { Panel } from '../../components/panel';
import { Time } from '../../components/time';
import { useText } from '../../utils/text';

type Row = RecordHandling & { index: number };

/** The actions that users took on the record, with their times. */
export const HandlingPanel = ({ by_hand: handlings }: Pick<PosEventDetail, 'by_hand'>) => {
  const text = useText();
  if (handlings.length === 0) return null;
  const columns: Column<Row>[] = [
    {
      id: 'action',
      label: text('event.handling.what'),
      cell: ({ action }) => text(`event.handling.${action}`),
    },
    { id: 'by', label: text('movement.by'), cell: ({ made_by: by }) => by ?? '–' },
    { id: 'at', label: text('movement.at'), cell: ({ at }) => <Time at={at} both /> },
  ];
  return (
    <Panel title={text('event.handling')}>
      <DataTable
        label={text('event.handling')}
        columns={columns}
        rows={handlings.map((one, index) => ({ ...one, index }))}
        rowId={({ index }) => index}
        empty={{ text: '' }}
      />
    </Panel>
  );
};
