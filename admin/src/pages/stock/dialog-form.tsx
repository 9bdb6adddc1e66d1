import {
  Button,
  type ButtonProps,
  Dialog,
  Field,
  Flex,
  Modal,
  TextInput,
} from '@strapi/design-system';
import { ConfirmDialog } from '@strapi/strapi/admin';
import { type ReactNode, useRef, useState } from 'react';
import { EditForm } from '../../components/edit-form';
import { type Problems, type Saved } from '../../utils/errors';
import { useText } from '../../utils/text';

export interface DialogField {
  name: string;
  label: string;
  hint?: string;
  required?: boolean;
  /** A whole number; negative ones too. */
  whole?: boolean;
}

interface DialogFormProps {
  label: string;
  icon: ReactNode;
  variant?: ButtonProps['variant'];
  fields: readonly DialogField[];
  onSubmit(values: Record<string, string>): Promise<Saved>;
}

const isWhole = (text: string): boolean => /^[+-]?\d{1,10}$/.test(text.trim());

/** A button that opens a short form; what the server objects to stands beside its field. */
export const DialogForm = ({ label, icon, variant, fields, onSubmit }: DialogFormProps) => {
  const text = useText();
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

  const problemsOf = (values: Record<string, string>): Problems =>
    Object.fromEntries(
      fields.flatMap(({ name, required, whole }) => {
        const value = (values[name] ?? '').trim();
        if (required && value === '') return [[name, text('form.required')]];
        return whole && value !== '' && !isWhole(value) ? [[name, text('form.whole')]] : [];
      })
    ) as Problems;

  return (
    <Modal.Root open={open} onOpenChange={change}>
      <Modal.Trigger>
        <Button variant={variant} startIcon={icon}>
          {label}
        </Button>
      </Modal.Trigger>
      <Modal.Content aria-describedby={undefined}>
        <EditForm<Record<string, string>>
          initial={Object.fromEntries(fields.map(({ name }) => [name, '']))}
          problemsOf={problemsOf}
          onSave={async (values) => {
            const done = await onSubmit(values);
            if (done.saved) close();
            return done;
          }}
        >
          {({ values, errors, saving, set }) => (
            <>
              <Modal.Header closeLabel={text('action.close')}>
                <Modal.Title>{label}</Modal.Title>
              </Modal.Header>
              <Modal.Body>
                <Flex direction="column" alignItems="stretch" gap={4}>
                  {fields.map(({ name, label: heading, hint, required }) => (
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
                        onChange={({ currentTarget: { value } }) => {
                          const all = { ...values, [name]: value };
                          entered.current = Object.values(all).some((one) => one !== '');
                          set(name, value);
                        }}
                      />
                      <Field.Hint />
                      <Field.Error />
                    </Field.Root>
                  ))}
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
          )}
        </EditForm>
        <Dialog.Root open={asking} onOpenChange={setAsking}>
          <ConfirmDialog onConfirm={close}>{text('form.unsaved')}</ConfirmDialog>
        </Dialog.Root>
      </Modal.Content>
    </Modal.Root>
  );
};
