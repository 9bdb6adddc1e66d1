import { Button, Flex, Radio } from '@strapi/design-system';
import { Layouts, Page, useNotification } from '@strapi/strapi/admin';
import { useCallback, useRef, useState } from 'react';
import { useSearchParams } from 'react-router-dom';
import {
  type FileKind,
  IMPORT_COLUMNS_MAX,
  type ImportJob,
} from '../../../../shared/contracts/imports';
import { Panel } from '../../components/panel';
import { useAccess } from '../../permissions';
import { useUpload } from '../../services/imports';
import { useModules } from '../../services/settings';
import { delimiterOf, readRecord, renameColumns } from '../../utils/csv-reader';
import { useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';
import { ColumnTable } from './column-table';
import { guess, problemsOf } from './columns';
import { FileDrop } from './file-drop';
import { ImportPanel } from './import-job';

/** As much of a file as its header and its first row are looked for in. */
const HEAD_BYTES = 256 * 1024;

interface Chosen {
  file: File;
  headings: string[];
  sample: string[];
  names: (string | null)[];
}

const readHead = async (file: File, kind: FileKind): Promise<Chosen> => {
  const text = await file.slice(0, HEAD_BYTES).text();
  const delimiter = delimiterOf(text);
  const header = readRecord(text, 0, delimiter);
  const { cells: sample } = readRecord(text, header.next, delimiter);
  const headings = text === '' ? [] : header.cells;
  return { file, headings, sample, names: headings.map((heading) => guess(kind, heading)) };
};

/** The kinds of files that the user may import, on a site that has them. */
const useKinds = (): FileKind[] => {
  const { can } = useAccess();
  const { features } = useModules().data ?? {};
  return [
    ...(can('stock.import') && (features?.pos ?? false) ? (['items'] as const) : []),
    ...(can('crm.import') && (features?.crm ?? false) ? (['contacts'] as const) : []),
  ];
};

/** Dry run first: what it found is of this file with these columns. */
interface Progress {
  tried: ImportJob | null;
  running: ImportJob | null;
}

const NOTHING: Progress = { tried: null, running: null };

/** One file of one kind: its columns, what would come of it, and what came of it. */
const FileImport = ({
  kind,
  onStarted,
}: {
  kind: FileKind;
  onStarted(id: number, isShown: boolean): void;
}) => {
  const text = useText();
  const outcome = useOutcome();
  const { toggleNotification } = useNotification();
  const upload = useUpload();
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [sending, setSending] = useState(false);
  const [{ tried, running }, setProgress] = useState<Progress>(NOTHING);
  const latest = useRef<Chosen | null>(null);

  const prepare = (next: Chosen | null): void => {
    latest.current = next;
    setProgress(NOTHING);
    setChosen(next);
  };
  const fail = (message: string) => toggleNotification({ type: 'danger', message });
  const choose = (file: File): void => {
    prepare(null);
    void readHead(file, kind).then((head) => {
      const { length: n } = head.headings;
      if (n <= IMPORT_COLUMNS_MAX) prepare(head);
      else fail(text('import.tooManyColumns', { n, most: IMPORT_COLUMNS_MAX }));
    });
  };
  const start = async (dryRun: boolean): Promise<void> => {
    if (!chosen) return;
    setSending(true);
    const file = await renameColumns(chosen.file, chosen.names).catch(() => null);
    if (!file) {
      setSending(false);
      fail(text('import.notUtf8'));
      return;
    }
    const job = outcome(await upload({ kind, dryRun, file }));
    setSending(false);
    if (!job) return;
    // Another file or other columns were chosen meanwhile: this one is shown by its address alone.
    const isLatest = latest.current === chosen;
    onStarted(job.id, isLatest);
    if (!isLatest) return;
    setProgress((before) => ({ tried: dryRun ? null : before.tried, running: job }));
  };
  const onEnded = useCallback((job: ImportJob): void => {
    if (job.dry_run && job.state === 'done') {
      setProgress((before) => (before.tried ? before : { ...before, tried: job }));
    }
  }, []);

  const isMatched = chosen !== null && Object.keys(problemsOf(kind, chosen.names)).length === 0;
  return (
    <Flex direction="column" alignItems="stretch" gap={6}>
      <Panel title={text('import.file')}>
        <FileDrop name={chosen?.file.name ?? null} onFile={choose} />
      </Panel>
      {chosen && (
        <Panel
          title={text('import.columns')}
          actions={
            <>
              <Button
                variant="secondary"
                loading={sending}
                disabled={!isMatched}
                onClick={() => void start(true)}
              >
                {text('import.try')}
              </Button>
              <Button
                loading={sending}
                disabled={!isMatched || !tried?.total || running?.dry_run === false}
                onClick={() => void start(false)}
              >
                {text('import.start')}
              </Button>
            </>
          }
        >
          <ColumnTable
            kind={kind}
            headings={chosen.headings}
            sample={chosen.sample}
            names={chosen.names}
            onChange={(names) => prepare({ ...chosen, names })}
          />
        </Panel>
      )}
      {running && <ImportPanel key={running.id} id={running.id} onEnded={onEnded} />}
    </Flex>
  );
};

const forget = (): void => undefined;

const ImportPage = () => {
  const text = useText();
  const kinds = useKinds();
  const [wanted, setWanted] = useState<FileKind | null>(null);
  const kind = wanted ?? kinds[0];
  const [params, setParams] = useSearchParams();
  /** In the address, so that its progress is there after a reload. */
  const shown = Number(params.get('import'));
  const [started, setStarted] = useState(0);
  return (
    <Page.Main>
      <Page.Title>{text('nav.import')}</Page.Title>
      <Layouts.Header title={text('nav.import')} subtitle={text('import.subtitle')} />
      <Layouts.Content>
        <Flex direction="column" alignItems="stretch" gap={6}>
          {kinds.length > 1 && (
            <Panel title={text('import.what')}>
              <Radio.Group
                aria-label={text('import.what')}
                value={kind ?? ''}
                onValueChange={(chosen) => {
                  setWanted(chosen as FileKind);
                  setStarted(0);
                }}
              >
                {kinds.map((one) => (
                  <Radio.Item key={one} value={one}>
                    {text(`import.kind.${one}`)}
                  </Radio.Item>
                ))}
              </Radio.Group>
            </Panel>
          )}
          {shown > 0 && shown !== started && (
            <ImportPanel key={shown} id={shown} onEnded={forget} />
          )}
          {kind && (
            <FileImport
              key={kind}
              kind={kind}
              onStarted={(id, isShown) => {
                setStarted(isShown ? id : 0);
                setParams({ import: String(id) }, { replace: true });
              }}
            />
          )}
        </Flex>
      </Layouts.Content>
    </Page.Main>
  );
};

export default ImportPage;
