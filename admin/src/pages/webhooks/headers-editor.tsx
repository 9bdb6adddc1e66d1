import { Button, Field, Flex, IconButton, TextInput, Typography } from '@strapi/design-system';
import { Eye, EyeStriked, Plus, Trash } from '@strapi/icons';
import { useState } from 'react';
import {
  HEADER_LIMITS,
  KEPT_VALUE,
  type WebhookWithSecret,
} from '../../../../shared/contracts/webhooks';
import { useAccess } from '../../permissions';
import { useReveal } from '../../services/webhooks';
import { useOutcome } from '../../utils/errors';
import { useText } from '../../utils/text';
import type { HeaderRow } from './header-rows';

interface RowProps {
  row: HeaderRow;
  shown: boolean;
  /** The value that is kept, once it was asked for. */
  kept?: string | null;
  disabled?: boolean;
  onChange(row: HeaderRow): void;
  onRemove(): void;
}

const Row = ({ row, shown, kept, disabled, onChange, onRemove }: RowProps) => {
  const text = useText();
  const { name, value } = row;
  const isKept = value === KEPT_VALUE;
  return (
    <Flex gap={2} alignItems="end" wrap="wrap">
      <Field.Root name="header-name" flex="1" minWidth="20rem">
        <Field.Label>{text('headers.name')}</Field.Label>
        <TextInput
          value={name}
          disabled={disabled}
          autoComplete="off"
          spellCheck={false}
          maxLength={HEADER_LIMITS.name}
          onChange={(event) => onChange({ name: event.currentTarget.value, value })}
        />
      </Field.Root>
      <Field.Root name="header-value" flex="2" minWidth="20rem">
        <Field.Label>{text('headers.value')}</Field.Label>
        <TextInput
          type={shown ? 'text' : 'password'}
          // A browser would offer the reader's own password.
          autoComplete="new-password"
          spellCheck={false}
          value={isKept ? '' : value}
          placeholder={isKept ? (shown && kept) || text('headers.kept') : undefined}
          disabled={disabled}
          maxLength={HEADER_LIMITS.value}
          onChange={(event) => onChange({ name, value: event.currentTarget.value })}
        />
      </Field.Root>
      {!disabled && (
        <IconButton
          label={
            name.trim() === '' ? text('headers.remove') : text('headers.removeNamed', { name })
          }
          onClick={onRemove}
        >
          <Trash />
        </IconButton>
      )}
    </Flex>
  );
};

interface HeadersEditorProps {
  rows: readonly HeaderRow[];
  error?: string;
  disabled?: boolean;
  /** A saved webhook, whose values can be asked for. */
  webhookId?: number;
  onChange(rows: readonly HeaderRow[]): void;
}

/** Shows or hides the values; kept ones are fetched when they are shown. */
const useShownValues = (rows: readonly HeaderRow[], webhookId: number | undefined) => {
  const outcome = useOutcome();
  const { can } = useAccess();
  const [shown, setShown] = useState(false);
  const [kept, setKept] = useState<NonNullable<WebhookWithSecret['headers']>>({});
  const [reveal] = useReveal();
  const canReveal = webhookId !== undefined && can('webhooks.reveal');
  const toggle = async (): Promise<void> => {
    const isKept = rows.some(({ value }) => value === KEPT_VALUE);
    if (!shown && canReveal && isKept) {
      setKept(outcome(await reveal(webhookId))?.headers ?? {});
    }
    setShown(!shown);
  };
  const canShow = rows.some(({ value }) => value !== '' && (canReveal || value !== KEPT_VALUE));
  return { shown, kept, canShow, toggle };
};

/** The headers of its own that a webhook's posts carry. */
export const HeadersEditor = ({
  rows,
  error,
  disabled,
  webhookId,
  onChange,
}: HeadersEditorProps) => {
  const text = useText();
  const { shown, kept, canShow, toggle } = useShownValues(rows, webhookId);
  return (
    <Field.Root name="headers" error={error}>
      <Flex direction="column" alignItems="stretch" gap={4} width="100%">
        <Typography textColor="neutral600">{text('headers.hint')}</Typography>
        {rows.length === 0 && <Typography>{text('headers.none')}</Typography>}
        {rows.map((row, at) => (
          <Row
            // Rows have no id, and none is moved.
            key={at}
            row={row}
            shown={shown}
            kept={kept[row.name]}
            disabled={disabled}
            onChange={(next) => onChange(rows.with(at, next))}
            onRemove={() => onChange(rows.toSpliced(at, 1))}
          />
        ))}
        <Field.Error />
        <Flex gap={2} wrap="wrap">
          {!disabled && (
            <Button
              variant="secondary"
              startIcon={<Plus />}
              disabled={rows.length >= HEADER_LIMITS.most}
              onClick={() => onChange([...rows, { name: '', value: '' }])}
            >
              {text('headers.add')}
            </Button>
          )}
          {canShow && (
            <Button
              variant="tertiary"
              startIcon={shown ? <EyeStriked /> : <Eye />}
              aria-pressed={shown}
              onClick={() => void toggle()}
            >
              {text(shown ? 'headers.hide' : 'headers.show')}
            </Button>
          )}
        </Flex>
      </Flex>
    </Field.Root>
  );
};
