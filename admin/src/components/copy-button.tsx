import { Button, type ButtonProps, IconButton } from '@strapi/design-system';
import { Check, Duplicate } from '@strapi/icons';
import { useClipboard, useNotification } from '@strapi/strapi/admin';
import { useState } from 'react';
import { useText } from '../utils/text';

const CONFIRMED_MS = 2000;

interface CopyButtonProps {
  value: string;
  /** Label for screen readers: "Copy the secret". */
  label: string;
  /** Shows the label as a button's text instead of an icon. */
  wide?: boolean;
  size?: ButtonProps['size'];
}

export const CopyButton = ({ value, label, wide, size = 'S' }: CopyButtonProps) => {
  const { copy } = useClipboard();
  const { toggleNotification } = useNotification();
  const text = useText();
  const [copied, setCopied] = useState(false);
  const onCopy = async (): Promise<void> => {
    if (!(await copy(value))) {
      toggleNotification({ type: 'warning', message: text('copy.failed') });
      return;
    }
    setCopied(true);
    toggleNotification({ type: 'success', message: text('copy.done') });
    setTimeout(() => setCopied(false), CONFIRMED_MS);
  };
  const icon = copied ? <Check /> : <Duplicate />;
  if (wide) {
    return (
      <Button variant="tertiary" size={size} startIcon={icon} onClick={() => void onCopy()}>
        {label}
      </Button>
    );
  }
  return (
    <IconButton label={label} variant="ghost" onClick={() => void onCopy()}>
      {icon}
    </IconButton>
  );
};
