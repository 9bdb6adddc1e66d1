import type { LoggedRefusal } from '../../../../shared/contracts/pos';
import { DataTable } from '../../components/data-table';
import { Loaded } from '../../components/page-states';
import { Pager } from '../../components/pager';
import { RowLink } from '../../components/row-link';
import { useLoggedRefusals } from '../../services/pos';
import { usePolling } from '../../utils/polling';
import { useText } from '../../utils/text';
import { useRefusalColumns } from '../connections/refusals';

const REFRESH_MS = 10_000;

interface RefusedListProps {
  /** All of them where it is undefined. */
  connection: number | undefined;
  page: number;
  perPage: number;
}

/** Refused requests of all tills, each with the answer that its till got. */
export const RefusedList = ({ connection, page, perPage }: RefusedListProps) => {
  const text = useText();
  const refusals = useLoggedRefusals(
    { connection, page, perPage },
    { pollingInterval: usePolling(REFRESH_MS) }
  );
  const [at, ...others] = useRefusalColumns<LoggedRefusal>();
  const columns = [
    ...(at ? [at] : []),
    {
      id: 'till',
      label: text('event.connection'),
      cell: ({ connection: { id, name } }: LoggedRefusal) => (
        <RowLink to={`/plugins/switchboard/tills/${id}`}>{name}</RowLink>
      ),
    },
    ...others,
  ];
  return (
    <Loaded query={refusals}>
      {({ data, meta }) => (
        <>
          <DataTable
            label={text('refusal.title')}
            columns={columns}
            rows={data}
            rowId={({ id }) => id}
            empty={{ text: text('refusal.none') }}
          />
          {meta.pagination.total > 0 && <Pager pagination={meta.pagination} />}
        </>
      )}
    </Loaded>
  );
};
