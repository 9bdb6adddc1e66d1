import { Button, Flex, Typography } from '@strapi/design-system';
import { Download } from '@strapi/icons';
import type { ImportJob } from '../../../../shared/contracts/imports';
import { type Column, DataTable } from '../../components/data-table';
import { JobPanel } from '../../components/job-panel';
import { Loaded } from '../../components/page-states';
import { useImportRejects } from '../../services/imports';
import { download } from '../../utils/csv';
import { readAll } from '../../utils/csv-reader';
import { useText } from '../../utils/text';

/** Faults that are shown; the file of rejects has them all. */
const SHOWN = 50;

interface Fault {
  line: string;
  message: string;
}

/** Which rows failed, and why. */
const Rejects = ({ id }: { id: number }) => {
  const text = useText();
  const rejects = useImportRejects(id);
  const columns: Column<Fault>[] = [
    { id: 'line', label: text('import.line'), cell: ({ line }) => line },
    {
      id: 'message',
      label: text('import.fault'),
      cell: ({ message }) => <Typography style={{ whiteSpace: 'normal' }}>{message}</Typography>,
    },
  ];
  return (
    <Loaded query={rejects}>
      {(csv) => (
        <>
          <Flex>
            <Button
              variant="tertiary"
              startIcon={<Download />}
              onClick={() => download(`import-${id}-rejects.csv`, csv)}
            >
              {text('import.rejects')}
            </Button>
          </Flex>
          <DataTable
            label={text('import.faults')}
            columns={columns}
            rows={readAll(csv)
              .slice(1, SHOWN + 1)
              .map(([line = '', message = '']) => ({ line, message }))}
            rowId={({ line, message }) => `${line}-${message}`}
            empty={{ text: text('import.noFaults') }}
          />
        </>
      )}
    </Loaded>
  );
};

interface ImportPanelProps {
  id: number;
  onEnded(job: ImportJob): void;
}

/** How an import gets on, and what came of it. */
export const ImportPanel = (props: ImportPanelProps) => {
  const text = useText();
  return (
    <JobPanel
      {...props}
      titleOf={({ dry_run: dryRun }) => text(dryRun ? 'import.dryRun' : 'import.import')}
      saidOf={({ dry_run: dryRun, total, created, updated, unchanged, failed }) =>
        text(dryRun ? 'import.wouldBe' : 'import.was', {
          total,
          created,
          updated,
          unchanged,
          failed,
        })
      }
    >
      {({ id, state, failed }) => state !== 'running' && failed > 0 && <Rejects id={id} />}
    </JobPanel>
  );
};
