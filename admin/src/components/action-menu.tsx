import { Button, Dialog, IconButton, MenuItem, SimpleMenu } from '@strapi/design-system';
import { More } from '@strapi/icons';
import { ConfirmDialog } from '@strapi/strapi/admin';
import { type ReactNode, useState } from 'react';
import { useText } from '../utils/text';
import { FocusBack } from './focus-back';

export interface MenuAction {
  label: string;
  icon: ReactNode;
  /** The consequence, shown before it happens. */
  question: ReactNode;
  isDangerous?: boolean;
  onConfirm(): Promise<unknown> | void;
}

/** Actions that are rare or cannot be undone, behind a "…" button; each asks before it acts. */
export const ActionMenu = ({ actions }: { actions: readonly MenuAction[] }) => {
  const text = useText();
  const [chosen, setChosen] = useState<MenuAction>();
  if (actions.length === 0) return null;
  return (
    <>
      <SimpleMenu
        tag={IconButton}
        icon={<More />}
        label={text('action.more')}
        popoverPlacement="bottom-end"
      >
        {actions.map((action) => (
          <MenuItem
            key={action.label}
            startIcon={action.icon}
            variant={action.isDangerous ? 'danger' : 'default'}
            onSelect={() => setChosen(action)}
          >
            {action.label}
          </MenuItem>
        ))}
      </SimpleMenu>
      <Dialog.Root
        open={chosen !== undefined}
        onOpenChange={(open) => !open && setChosen(undefined)}
      >
        {chosen && (
          <ConfirmDialog
            title={chosen.label}
            endAction={
              <>
                <FocusBack />
                <Button
                  fullWidth
                  variant={chosen.isDangerous ? 'danger-light' : 'default'}
                  onClick={() => {
                    setChosen(undefined);
                    void chosen.onConfirm();
                  }}
                >
                  {chosen.label}
                </Button>
              </>
            }
          >
            {chosen.question}
          </ConfirmDialog>
        )}
      </Dialog.Root>
    </>
  );
};
