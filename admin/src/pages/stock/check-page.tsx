import { Button, Flex, Typography } from '@strapi/design-system';
import { BackButton, Layouts, Page } from '@strapi/strapi/admin';
import { useCallback, useState } from 'react';
import type { ImportJob } from '../../../../shared/contracts/imports';
import type { LevelCheck } from '../../../../shared/contracts/stock';
import { JobPanel } from '../../components/job-panel';
import { Panel } from '../../components/panel';
import { useCheckLevels } from '../../services/stock-by-hand';
import { useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';
import { Differences } from './differences';

const LIST = '/plugins/switchboard/stock';

/** Compares all levels with the sums of their movements; repairs them once the user says so. */
const CheckPage = () => {
  const text = useText();
  const outcome = useOutcome();
  const [check, { isLoading }] = useCheckLevels();
  const [running, setRunning] = useState<LevelCheck | null>(null);
  const [ended, setEnded] = useState<ImportJob | null>(null);
  const start = async (mend: boolean): Promise<void> => {
    const job = outcome(await check({ mend }));
    if (job) setRunning(job);
  };
  const onEnded = useCallback((job: ImportJob): void => setEnded(job), []);
  const isRunning = running !== null && ended?.id !== running.id;
  const canRepair =
    ended !== null && !isRunning && ended.dry_run && ended.state === 'done' && ended.updated > 0;
  return (
    <Page.Main>
      <Page.Title>{text('check.title')}</Page.Title>
      <Layouts.Header
        title={text('check.title')}
        subtitle={text('check.subtitle')}
        navigationAction={<BackButton fallback={LIST} />}
      />
      <Layouts.Content>
        <Flex direction="column" alignItems="stretch" gap={6}>
          <Panel
            title={text('check.what')}
            actions={
              <>
                <Button
                  variant="secondary"
                  loading={isLoading || isRunning}
                  onClick={() => void start(false)}
                >
                  {text('check.start')}
                </Button>
                {canRepair && (
                  <Button loading={isLoading} onClick={() => void start(true)}>
                    {text('check.mend', { n: ended.updated })}
                  </Button>
                )}
              </>
            }
          >
            <Typography>{text('check.hint')}</Typography>
          </Panel>
          {running && (
            <JobPanel
              key={running.id}
              id={running.id}
              rows={running.levels}
              titleOf={({ dry_run: dryRun }) => text(dryRun ? 'check.found' : 'check.mended')}
              saidOf={({ dry_run: dryRun, total, updated }) =>
                text(dryRun ? 'check.differ' : 'check.wereMended', { total, updated })
              }
              onEnded={onEnded}
            >
              {(job) => job.state !== 'running' && job.updated > 0 && <Differences job={job} />}
            </JobPanel>
          )}
        </Flex>
      </Layouts.Content>
    </Page.Main>
  );
};

export default CheckPage;
