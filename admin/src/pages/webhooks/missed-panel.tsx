import {
  Button,
  Field,
  Flex,
  SingleSelect,
  SingleSelectOption,
  Typography,
} from '@strapi/design-system';
import { Eye, PaperPlane } from '@strapi/icons';
import { useState } from 'react';
import type { ManagedWebhook } from '../../../../shared/contracts/webhooks';
import { CodeBlock } from '../../components/code-block';
import { Panel } from '../../components/panel';
import { TimeField } from '../../components/time-field';
import { useAccess } from '../../permissions';
import {
  type ReplayRange,
  useEventNames,
  useJournal,
  usePreviewReplay,
  useReplay,
} from '../../services/webhooks';
import { statusOf, useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';
import { JournalTable } from './journal-table';

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
const NO_JOURNAL = 409;
const OPTIONS_FILE = 'config/plugins';
const OPTION = 'webhooks: { journalDays: 7 }';

const JournalOff = () => {
  const text = useText();
  return (
    <>
      <Typography textColor="neutral600">{text('missed.off')}</Typography>
      <CodeBlock title={OPTIONS_FILE} code={OPTION} copyLabel={text('missed.off.copy')} />
    </>
  );
};

interface RangeFieldsProps {
  from: string | undefined;
  to: string | undefined;
  event: string;
  events: readonly string[];
  onChange(change: { from?: string | undefined; to?: string | undefined; event?: string }): void;
}

const RangeFields = ({ from, to, event, events, onChange }: RangeFieldsProps) => {
  const text = useText();
  const isBackwards = from !== undefined && to !== undefined && from >= to;
  return (
    <>
      <TimeField
        name="missed-from"
        label={text('missed.from')}
        value={from}
        onChange={(at) => onChange({ from: at })}
      />
      <TimeField
        name="missed-to"
        label={text('missed.to')}
        error={isBackwards ? text('missed.range') : undefined}
        value={to}
        onChange={(at) => onChange({ to: at })}
      />
      <Field.Root name="missed-event" minWidth="24rem">
        <Field.Label>{text('missed.event')}</Field.Label>
        <SingleSelect
          value={event}
          placeholder={text('missed.event.all')}
          clearLabel={text('action.clear')}
          onClear={() => onChange({ event: '' })}
          onChange={(chosen) => onChange({ event: String(chosen) })}
        >
          {events.map((name) => (
            <SingleSelectOption key={name} value={name}>
              {name}
            </SingleSelectOption>
          ))}
        </SingleSelect>
      </Field.Root>
    </>
  );
};

interface Fields {
  /** ISO 8601. */
  from: string | undefined;
  to: string | undefined;
  event: string;
}

const lastDay = (): Fields => {
  const now = Math.ceil(Date.now() / MINUTE_MS) * MINUTE_MS;
  const iso = (at: number): string => new Date(at).toISOString();
  return { from: iso(now - DAY_MS), to: iso(now), event: '' };
};

const Replay = ({ webhook, onOff }: { webhook: ManagedWebhook; onOff(): void }) => {
  const text = useText();
  const outcome = useOutcome();
  const catalogue = useEventNames();
  const [fields, setFields] = useState(lastDay);
  const [found, setFound] = useState<{ range: ReplayRange; matching: number }>();
  const [look, looking] = usePreviewReplay();
  const [send, sending] = useReplay();
  const wanted = new Set(webhook.events);
  const events = (catalogue.data ?? [])
    .map(({ event }) => event)
    .filter((name) => wanted.has('*') || wanted.has(name));
  const { from, to } = fields;
  const range: ReplayRange | undefined =
    from !== undefined && to !== undefined && from < to
      ? { id: webhook.id, from, to, ...(fields.event !== '' && { events: [fields.event] }) }
      : undefined;
  const onLook = async (wantedRange: ReplayRange): Promise<void> => {
    const done = await look(wantedRange);
    if ('error' in done && statusOf(done.error) === NO_JOURNAL) onOff();
    else {
      const answer = outcome(done);
      setFound(answer && { range: wantedRange, matching: answer.matching });
    }
  };
  const onSend = async (wantedRange: ReplayRange): Promise<void> => {
    outcome(await send(wantedRange), 'missed.started');
    setFound(undefined);
  };
  return (
    <>
      <Flex gap={4} wrap="wrap" alignItems="end">
        <RangeFields
          {...fields}
          events={events}
          onChange={(change) => {
            setFields({ ...fields, ...change });
            setFound(undefined);
          }}
        />
        <Button
          size="L"
          variant="secondary"
          startIcon={<Eye />}
          disabled={!range}
          loading={looking.isLoading}
          onClick={() => range && void onLook(range)}
        >
          {text('missed.look')}
        </Button>
      </Flex>
      {found && (
        <Flex gap={4} wrap="wrap" role="status">
          <Typography>{text('missed.matching', { n: found.matching })}</Typography>
          {found.matching > 0 && (
            <Button
              startIcon={<PaperPlane />}
              loading={sending.isLoading}
              onClick={() => void onSend(found.range)}
            >
              {text('missed.send', { n: found.matching })}
            </Button>
          )}
        </Flex>
      )}
    </>
  );
};

/** The journaled events that a webhook never got, with a button to send them. */
export const MissedPanel = ({ webhook }: { webhook: ManagedWebhook }) => {
  const text = useText();
  const { can } = useAccess();
  const mayRead = can('journal.read');
  const [isOff, setIsOff] = useState(false);
  const [isRead, setIsRead] = useState(false);
  // Users who may not read the journal learn whether there is one from the missed events.
  const journal = useJournal({ after: '', limit: 1 }, { skip: !mayRead });
  const off = isOff || statusOf(journal.error) === NO_JOURNAL;
  return (
    <Panel
      title={text('missed.title')}
      actions={
        mayRead &&
        !off && (
          <Button
            size="S"
            variant="ghost"
            aria-expanded={isRead}
            onClick={() => setIsRead(!isRead)}
          >
            {text(isRead ? 'missed.journal.hide' : 'missed.journal')}
          </Button>
        )
      }
    >
      {off ? (
        <JournalOff />
      ) : (
        <>
          <Typography textColor="neutral600">{text('missed.hint')}</Typography>
          <Replay webhook={webhook} onOff={() => setIsOff(true)} />
          {isRead && <JournalTable />}
        </>
      )}
    </Panel>
  );
};
