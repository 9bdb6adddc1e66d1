import { Button, Dialog, Switch } from '@strapi/design-system';
import { ConfirmDialog } from '@strapi/strapi/admin';
import { useState } from 'react';
import { useText } from '../utils/text';
import { FocusBack } from './focus-back';

interface ConfirmSwitchProps {
  label: string;
  /** The consequence of switching off, shown before it happens. */
  question: string;
  checked: boolean;
  disabled?: boolean;
  onLabel: string;
  offLabel: string;
  onChange(checked: boolean): Promise<unknown> | void;
}

/** A switch that asks before it switches off; on it goes at once. */
export const ConfirmSwitch = ({
  label,
  question,
  checked,
  disabled,
  onLabel,
  offLabel,
  onChange,
}: ConfirmSwitchProps) => {
  const text = useText();
  const [asking, setAsking] = useState(false);
  return (
    <>
      <Switch
        aria-label={label}
        checked={checked}
        disabled={disabled}
        onLabel={onLabel}
        offLabel={offLabel}
        visibleLabels
        onCheckedChange={(on) => (on ? void onChange(true) : setAsking(true))}
      />
      <Dialog.Root open={asking} onOpenChange={setAsking}>
        <ConfirmDialog
          title={text('action.switchOff')}
          endAction={
            <>
              <FocusBack />
              <Button
                fullWidth
                variant="danger-light"
                onClick={() => {
                  setAsking(false);
                  void onChange(false);
                }}
              >
                {text('action.switchOff')}
              </Button>
            </>
          }
        >
          {question}
        </ConfirmDialog>
      </Dialog.Root>
    </>
  );
};
