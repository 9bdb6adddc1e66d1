import { Blocker, Form, useForm } from '@strapi/strapi/admin';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { changedFields, same } from '../utils/changed-fields';
import type { Problems, Saved } from '../utils/errors';

/** The state that a form's fields are drawn from. */
export interface Editing<Values> {
  values: Values;
  errors: Problems;
  saving: boolean;
  /** Something is entered that is not saved. */
  modified: boolean;
  /** For a button outside of the form's element. */
  submit(): void;
  set<K extends keyof Values & string>(field: K, value: Values[K]): void;
}

interface EditFormProps<Values extends object> {
  initial: Values;
  /** Problems found without the server, by field. */
  problemsOf?(values: Values): Problems;
  /**
   * @param changed the fields that differ from what they were when editing began
   * @param before all fields as they were then
   */
  onSave(values: Values, changed: Partial<Values>, before: Values): Promise<Saved>;
  children(editing: Editing<Values>): ReactNode;
}

/** Reports when the record may be reloaded: while nothing is being edited. */
const WhenUntouched = ({ tell }: { tell(untouched: boolean): void }) => {
  const modified = useForm('EditForm', (form) => form.modified);
  useEffect(() => tell(!modified), [modified, tell]);
  return null;
};

/**
 * The host's form, which asks before unsaved edits are left, by a link, the browser's back or a
 * closed tab. A change of the record from elsewhere is shown where nothing is being edited, and
 * never takes an edit away.
 */
export const EditForm = <Values extends object>({
  initial,
  problemsOf,
  onSave,
  children,
}: EditFormProps<Values>) => {
  const [base, setBase] = useState(initial);
  const [untouched, setUntouched] = useState(true);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (untouched && !same(base, initial)) setBase(initial);
  }, [untouched, base, initial]);

  return (
    <Form<Values>
      ref={form}
      method="PUT"
      width="100%"
      initialValues={base}
      onSubmit={async (values, { setErrors, resetForm }) => {
        const problems = problemsOf?.(values) ?? {};
        const done: Saved =
          Object.keys(problems).length > 0
            ? { saved: false, problems }
            : await onSave(values, changedFields(values, base), base);
        if (done.saved) resetForm(values);
        else setErrors(done.problems as Parameters<typeof setErrors>[0]);
      }}
    >
      {({ values, errors, isSubmitting, modified, onChange, setErrors }) => (
        <>
          <WhenUntouched tell={setUntouched} />
          <Blocker />
          {children({
            values,
            errors: errors as Problems,
            saving: isSubmitting,
            modified,
            submit: () => form.current?.requestSubmit(),
            set: (field, value) => {
              onChange(field, value);
              if ((errors as Problems)[field]) {
                setErrors({ ...errors, [field]: undefined });
              }
            },
          })}
        </>
      )}
    </Form>
  );
};
