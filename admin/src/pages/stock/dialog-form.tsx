import {
  Button,
  type ButtonProps,
  Dialog,
  Field,
  Flex,
  IconButton,
  Modal,
  TextInput,
} from '@strapi/design-system';
import { ConfirmDialog } from '@strapi/strapi/admin';
import { type ReactNode, useRef, useState } from 'react';
import { EditForm } from '../../components/edit-form';
import { FocusBack } from '../../components/focus-back';
import { type Problems, type Saved } from '../../utils/errors';
import { useText } from '../../utils/text';
import { isWhole } from '../../utils/whole';

export interface DialogField {
  name: string;
  label: string;
  hint?: string;
  required?: boolean;
  /** A whole number; negative ones too. */
  whole?: boolean;
}

type Values = Record<string, string>;

interface DialogFormProps {
  label: string;
  icon: ReactNode;
  variant?: ButtonProps['variant'];
  /** An icon alone, for rows of a table. */
  compact?: boolean;
  /** They may depend on what is entered; each then has its place in `initial`. */
  fields: readonly DialogField[] | ((values: Values) => readonly DialogField[]);
  initial?: Values;
  /** Stands above the fields. */
  before?(values: Values, set: (name: string, value: string) => void): ReactNode;
  /** Stands below them: what would come of it. */
  after?(values: Values): ReactNode;
  onSubmit(values: Values): Promise<Saved>;
}

/** The first field has the focus, not the button that closes the form. */
const focusFirstField = (event: Event): void => {
  const field = (event.currentTarget as HTMLElement).querySelector('input');
  if (!field) return;
  event.preventDefault();
  field.focus();
};

/** A button that opens a short form; the server's errors are shown at their fields. */
export const DialogForm = ({
  label,
  icon,
  variant,
  compact,
  fields: given,
  initial: begin = {},
  before,
  after,
  onSubmit,
}: DialogFormProps) => {
  const text = useText();
  const fieldsOf = typeof given === 'function' ? given : () => given;
  const initial: Values = {
    ...Object.fromEntries(fieldsOf(begin).map(({ name }) => [name, ''])),
    ...begin,
  };
  const [open, setOpen] = useState(false);
  const [asking, setAsking] = useState(false);
  // No state: Escape may follow a key before anything is drawn again.
  const entered = useRef(false);

  const close = (): void => {
    entered.current = false;
    setAsking(false);
    setOpen(false);
  };
  const change = (next: boolean): void => {
    if (next) setOpen(true);
    else if (entered.current) setAsking(true);
    else close();
  };

  const problemsOf = (values: Values): Problems =>
    Object.fromEntries(
      fieldsOf(values).flatMap(({ name, required, whole }) => {
        const value = (values[name] ?? '').trim();
        if (required && value === '') return [[name, text('form.required')]];
        return whole && value !== '' && !isWhole(value) ? [[name, text('form.whole')]] : [];
      })
    ) as Problems;

  return (
    <Modal.Root open={open} onOpenChange={change}>
      <Modal.Trigger>
        {compact ? (
          <IconButton label={label} variant="ghost">
            {icon}
          </IconButton>
        ) : (
          <Button variant={variant} startIcon={icon}>
            {label}
          </Button>
        )}
      </Modal.Trigger>
      <Modal.Content aria-describedby={undefined} onOpenAutoFocus={focusFirstField}>
        <EditForm<Values>
          initial={initial}
          problemsOf={problemsOf}
          onSave={async (values) => {
            const done = await onSubmit(values);
            if (done.saved) close();
            return done;
          }}
        >
          {({ values, errors, saving, set }) => {
            const enter = (name: string, value: string): void => {
              entered.current = Object.entries({ ...values, [name]: value }).some(
                ([field, one]) => one !== (initial[field] ?? '')
              );
              set(name, value);
            };
            return (
              <>
                <Modal.Header closeLabel={text('action.close')}>
                  <Modal.Title>{label}</Modal.Title>
                </Modal.Header>
                <Modal.Body>
                  <Flex direction="column" alignItems="stretch" gap={4}>
                    {before?.(values, enter)}
                    {fieldsOf(values).map(({ name, label: heading, hint, required }) => (
                      <Field.Root
                        key={name}
                        name={name}
                        hint={hint}
                        error={errors[name]}
                        required={required}
                      >
                        <Field.Label>{heading}</Field.Label>
                        <TextInput
                          value={values[name] ?? ''}
                          onChange={({ currentTarget: { value } }) => enter(name, value)}
                        />
                        <Field.Hint />
                        <Field.Error />
                      </Field.Root>
                    ))}
                    {after?.(values)}
                  </Flex>
                </Modal.Body>
                <Modal.Footer>
                  <Button variant="tertiary" onClick={() => change(false)}>
                    {text('action.close')}
                  </Button>
                  <Button type="submit" loading={saving}>
                    {text('action.save')}
                  </Button>
                </Modal.Footer>
              </>
            );
          }}
        </EditForm>
        <Dialog.Root open={asking} onOpenChange={setAsking}>
          <ConfirmDialog
            endAction={
              <>
                <FocusBack />
                <Button fullWidth variant="danger-light" onClick={close}>
                  {text('form.leave')}
                </Button>
              </>
            }
          >
            {text('form.unsaved')}
          </ConfirmDialog>
        </Dialog.Root>
      </Modal.Content>
    </Modal.Root>
  );
};
