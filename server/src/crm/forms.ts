import { errors } from '@strapi/utils';
import { logFailure } from '../runtime/text';
import { getPublisher } from '../webhooks/publish';
import { labelOf } from './content-types';
import { fitsContact } from './resources/schemas';
import { completion, upsertContact } from './resources/upsert-contact';
import { withOrigin } from './origin';
import { type Payload, subjectOf } from './rules';
import { type AttributeShape, type Form, isAnswer } from './mapping/sources';
import type { App } from '../app';

type Values = Readonly<Record<string, unknown>>;

/** The answers of `form.submitted`; docs/contract-webhooks.md#events. */
export const answersOf = (values: Values, attributes: Readonly<Record<string, AttributeShape>>) =>
  Object.entries(attributes)
    .filter(([name, shape]) => isAnswer(name, shape))
    .map(([name, shape]) => ({
      id: name,
      label: labelOf(name),
      type: shape.type,
      value: values[name] ?? null,
    }));

/** `{ email, 'fields.size': 'XL' }` -> `{ email, fields: { size: 'XL' } }`, without what is empty. */
const nest = (flat: Values): Values => {
  const nested: Record<string, unknown> = {};
  for (const [path, value] of Object.entries(flat)) {
    if (value === null || value === undefined || value === '') continue;
    const name = path.startsWith('fields.') ? path.slice('fields.'.length) : null;
    if (name === null) nested[path] = value;
    else nested.fields = { ...(nested.fields as Values | undefined), [name]: value };
  }
  return nested;
};

const readSender = (flat: Values) => {
  const given = Object.entries(nest(flat));
  const input = Object.fromEntries(given.filter(([key, value]) => fitsContact(key, value)));
  const refused = given.map(([key]) => key).filter((key) => !Object.hasOwn(input, key));
  const { email } = input;
  return typeof email === 'string' ? { input: { ...input, email }, refused } : null;
};

/** Adds the sender of a form's entry to the contacts, then sends `form.submitted`: all in its transaction. */
export const submitForm = async (app: App, form: Form, entry: Payload): Promise<void> => {
  const sender = readSender(entry.contact as Values);
  if (!sender) {
    app.log.warn(`switchboard: the form "${form.title}" came without a valid e-mail address`);
    return;
  }
  if (sender.refused.length > 0) {
    const keys = sender.refused.join(', ');
    app.log.warn(`switchboard: the form "${form.title}" could not fill ${keys} of its contact`);
  }
  try {
    const { contact, created } = await withOrigin('form', () =>
      upsertContact(app, sender.input, {
        onlyNew: { source: 'form' },
        // The sender of a form may know no more of the contact than the address. Values that differ from
        // the CRM's are kept in the answers.
        forKnown: (contact) => completion(contact, sender.input),
      })
    );
    const data = {
      contact,
      new_contact: created,
      form_id: form.uid,
      form_title: form.title,
      entry_id: entry.id,
      answers: answersOf(entry.answers as Values, form.attributes),
    };
    const event = 'form.submitted';
    await getPublisher(app).publish([{ event, data, subject: subjectOf({ event, data }) }]);
  } catch (error) {
    // A contact that the site's own rules refuse. The visitor's entry is worth more than the event; any
    // other error (the database failed) has broken the transaction and goes to the caller.
    if (!(error instanceof errors.ApplicationError)) throw error;
    logFailure(app, `the sender of the form "${form.title}" could not be added`)(error);
  }
};
