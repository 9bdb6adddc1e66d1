import { Button, type ButtonProps, Field, Flex, Modal, TextInput } from '@strapi/design-system';
import { type FormEvent, type ReactNode, useState } from 'react';
import { fieldErrorsOf } from '../../utils/errors';
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
  /** Resolves with the error of the server, or nothing when it is done. */
  onSubmit(values: Record<string, string>): Promise<unknown>;
  children?: ReactNode;
}

const isWhole = (text: string): boolean => /^[+-]?\d{1,10}$/.test(text.trim());

/** A button that opens a short form; what the server objects to stands beside its field. */
export const DialogForm = ({
  label,
  icon,
  variant,
  fields,
  onSubmit,
  children,
}: DialogFormProps) => {
  const text = useText();
  const [open, setOpen] = useState(false);
  const [values, setValues] = useState<Record<string, string>>({});
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [busy, setBusy] = useState(false);

  const change = (next: boolean): void => {
    setOpen(next);
    setValues({});
    setErrors({});
  };

  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    event.stopPropagation();
    const problems = fields.flatMap(({ name, required, whole }) => {
      const value = (values[name] ?? '').trim();
      if (required && value === '') return [[name, text('form.required')]];
      return whole && value !== '' && !isWhole(value) ? [[name, text('form.whole')]] : [];
    });
    setErrors(Object.fromEntries(problems) as Record<string, string>);
    if (problems.length > 0) return;
    setBusy(true);
    const error = await onSubmit(values);
    setBusy(false);
    if (error === undefined) change(false);
    else setErrors(fieldErrorsOf(error));
  };

  return (
    <Modal.Root open={open} onOpenChange={change}>
      <Modal.Trigger>
        <Button variant={variant} startIcon={icon}>
          {label}
        </Button>
      </Modal.Trigger>
      <Modal.Content aria-describedby={undefined}>
        <form noValidate onSubmit={(event) => void submit(event)}>
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
                    onChange={(event) =>
                      setValues({ ...values, [name]: event.currentTarget.value })
                    }
                  />
                  <Field.Hint />
                  <Field.Error />
                </Field.Root>
              ))}
              {children}
            </Flex>
          </Modal.Body>
          <Modal.Footer>
            <Button variant="tertiary" onClick={() => change(false)}>
              {text('action.close')}
            </Button>
            <Button type="submit" loading={busy}>
              {text('action.save')}
            </Button>
          </Modal.Footer>
        </form>
      </Modal.Content>
    </Modal.Root>
  );
};
