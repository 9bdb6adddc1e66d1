import { Typography } from '@strapi/design-system';
import {
  type ConnectionRefusal,
  type PosEventKind,
  RECORD_KINDS,
  REFUSALS_KEPT,
} from '../../../../shared/contracts/pos';
import { type Column, DataTable } from '../../components/data-table';
import { Panel } from '../../components/panel';
import { Loaded } from '../../components/page-states';
import { Time } from '../../components/time';
import { useRefusals } from '../../services/pos';
import { usePolling } from '../../utils/polling';
import { useText } from '../../utils/text';

const REFRESH_MS = 10_000;

const isRecord = (kind: ConnectionRefusal['kind']): kind is PosEventKind =>
  (RECORD_KINDS as readonly string[]).includes(kind);

/** When a request was refused, what it was and what its till was told. */
export const useRefusalColumns = <Row extends ConnectionRefusal>(): Column<Row>[] => {
  const text = useText();
  return [
    { id: 'at', label: text('refusal.at'), cell: ({ at }) => <Time at={at} both /> },
    {
      id: 'kind',
      label: text('event.kind'),
      cell: ({ kind }) => (isRecord(kind) ? text(`event.kind.${kind}`) : text(`refusal.${kind}`)),
    },
    {
      id: 'external',
      label: text('event.externalId'),
      cell: ({ external_id: external }) => external ?? '–',
    },
    {
      id: 'message',
      label: text('refusal.message'),
      cell: ({ code, message }) => (
        <>
          <Typography textColor="danger600" fontWeight="bold">
            {code}
          </Typography>
          <Typography tag="p" style={{ whiteSpace: 'normal', overflowWrap: 'anywhere' }}>
            {message}
          </Typography>
        </>
      ),
    },
  ];
};

/** The till's latest requests that were not accepted, each as its till was told. */
export const Refusals = ({ connectionId }: { connectionId: number }) => {
  const text = useText();
  const refusals = useRefusals(connectionId, { pollingInterval: usePolling(REFRESH_MS) });
  const columns = useRefusalColumns<ConnectionRefusal>();
  return (
    <div id="refusals">
      <Panel title={text('refusal.title')}>
        <Loaded query={refusals}>
          {(rows) => (
            <>
              <DataTable
                label={text('refusal.title')}
                columns={columns}
                rows={rows}
                rowId={(row) => rows.indexOf(row)}
                empty={{ text: text('refusal.empty') }}
              />
              {rows.length >= REFUSALS_KEPT && (
                <Typography variant="pi" textColor="neutral600">
                  {text('refusal.latest', { n: REFUSALS_KEPT })}
                </Typography>
              )}
            </>
          )}
        </Loaded>
      </Panel>
    </div>
  );
};
