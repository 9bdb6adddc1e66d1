import { ProgressBar, Typography } from '@strapi/design-system';
import { type ReactNode, useEffect } from 'react';
import type { ImportJob } from '../../../shared/contracts/imports';
import { useImportJob } from '../services/imports';
import { usePolling } from '../utils/polling';
import { useText } from '../utils/text';
import { Loaded } from './page-states';
import { Panel } from './panel';

const REFRESH_MS = 1000;

interface JobPanelProps {
  id: number;
  /** How many rows there will be, if the job does not say. */
  rows?: number;
  titleOf(job: ImportJob): string;
  /** Its numbers in words. */
  saidOf(job: ImportJob): string;
  onEnded(job: ImportJob): void;
  children(job: ImportJob): ReactNode;
}

/** How an import, or a check of the levels, gets on, and what came of it. */
export const JobPanel = ({ id, rows, titleOf, saidOf, onEnded, children }: JobPanelProps) => {
  const text = useText();
  const first = useImportJob(id);
  const isRunning = first.data === undefined || first.data.state === 'running';
  const query = useImportJob(id, { pollingInterval: usePolling(isRunning ? REFRESH_MS : 0) });
  const { data: job } = query;
  useEffect(() => {
    if (job && job.state !== 'running') onEnded(job);
  }, [job, onEnded]);
  return (
    <Loaded query={query}>
      {(shown) => {
        const { total, state, error } = shown;
        const all = shown.rows ?? rows ?? 0;
        return (
          <Panel title={titleOf(shown)}>
            {state === 'running' && all > 0 && (
              <>
                <ProgressBar
                  value={Math.min(100, Math.round((total / all) * 100))}
                  aria-label={text('import.progress')}
                />
                <Typography>{text('import.progress.of', { total, rows: all })}</Typography>
              </>
            )}
            <Typography role="status">
              {text(`import.state.${state}`)} {saidOf(shown)}
            </Typography>
            {error && <Typography textColor="danger600">{error}</Typography>}
            {children(shown)}
          </Panel>
        );
      }}
    </Loaded>
  );
};
