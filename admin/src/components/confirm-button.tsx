import { Button, type ButtonProps, Dialog, IconButton } from '@strapi/design-system';
import { ConfirmDialog } from '@strapi/strapi/admin';
import { type ReactNode, useState } from 'react';
import { useFocusAfter } from './focus-back';

interface ConfirmButtonProps {
  label: string;
  /** The consequence, shown before it happens. */
  question: ReactNode;
  icon: ReactNode;
  /** An icon alone, for rows of a table. */
  compact?: boolean;
  variant?: ButtonProps['variant'];
  disabled?: boolean;
  /** The verb of what will be done, where the label is not one. */
  confirmLabel?: string;
  onConfirm(): Promise<unknown> | void;
}

export const ConfirmButton = ({
  label,
  question,
  icon,
  compact,
  variant = 'danger-light',
  disabled,
  confirmLabel = label,
  onConfirm,
}: ConfirmButtonProps) => {
  const [open, setOpen] = useState(false);
  const focusPage = useFocusAfter();
  return (
    <Dialog.Root open={open} onOpenChange={setOpen}>
      <Dialog.Trigger>
        {compact ? (
          <IconButton label={label} variant="ghost" disabled={disabled}>
            {icon}
          </IconButton>
        ) : (
          <Button variant={variant} startIcon={icon} disabled={disabled}>
            {label}
          </Button>
        )}
      </Dialog.Trigger>
      <ConfirmDialog
        title={label}
        endAction={
          <Button
            fullWidth
            variant={variant}
            onClick={() => {
              setOpen(false);
              focusPage();
              void onConfirm();
            }}
          >
            {confirmLabel}
          </Button>
        }
      >
        {question}
      </ConfirmDialog>
    </Dialog.Root>
  );
};
