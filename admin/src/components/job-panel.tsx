import { ProgressBar, Typography } from '@strapi/design-system';
import { type ReactNode, useEffect } from 'react';
import type { ImportJob } from '../../../shared/contracts/imports';
import { useImportJob } from '../services/imports';
import { useText } from '../utils/text';
import { Loaded } from './page-states';
import { Panel } from './panel';

const REFRESH_MS = 1000;

interface JobPanelProps {
  id: number;
  /** How many rows there will be, where that is known. */
  rows: number | null;
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
  const query = useImportJob(id, { pollingInterval: isRunning ? REFRESH_MS : 0 });
  const { data: job } = query;
  useEffect(() => {
    if (job && job.state !== 'running') onEnded(job);
  }, [job, onEnded]);
  return (
    <Loaded query={query}>
      {(shown) => {
        const { total, state, error } = shown;
        const done = rows === null || rows === 0 ? null : Math.round((total / rows) * 100);
        return (
          <Panel title={titleOf(shown)}>
            {state === 'running' && done !== null && (
              <ProgressBar value={Math.min(100, done)} aria-label={text('import.progress')} />
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
