import {
  type Subject,
  SUBJECT_TYPES,
  type SubjectType,
} from '../../../../shared/contracts/webhooks';
import { lineOf } from '../../runtime/text';
import type { CrmEvent } from './types';

type Values = Readonly<Record<string, unknown>>;

const LABEL_MAX = 200;
const ID_MAX = 255;
const LABEL_KEYS = ['name', 'title', 'email'] as const;

const isObject = (value: unknown): value is Values => typeof value === 'object' && value !== null;

const asType = (name: string): SubjectType | undefined =>
  SUBJECT_TYPES.find((type) => type === name);

/**
 * The record that an event of the CRM is about: forms and e-mails are about their contact
 * (docs/contract-webhooks.md#deliveries).
 * @returns null where the data names none
 */
export const subjectOf = ({ event, data }: CrmEvent): Subject | null => {
  const kind = event.split('.', 1)[0] ?? '';
  const type = kind === 'form' || kind === 'email' ? 'contact' : asType(kind);
  if (!type || !isObject(data)) return null;
  const record = isObject(data[type]) ? data[type] : data;
  const id = lineOf(record.id, ID_MAX);
  if (id === '') return null;
  const label = LABEL_KEYS.map((key) => lineOf(record[key], LABEL_MAX)).find((text) => text !== '');
  return { type, id, label: label ?? lineOf(id, LABEL_MAX) };
};

export const withSubject = (event: CrmEvent): CrmEvent & { subject: Subject | null } => ({
  ...event,
  subject: subjectOf(event),
});
