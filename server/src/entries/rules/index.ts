import type { Subject } from '../../../../shared/contracts/webhooks';
import { lineOf } from '../../runtime/one-line';
import type { EntryChange } from './derive';
import type { EntryValue, Shape } from './shape';

export const ENTRY_EVENTS = [
  'entry.created',
  'entry.updated',
  'entry.published',
  'entry.unpublished',
  'entry.deleted',
] as const;

export const MEDIA_EVENTS = ['media.created', 'media.updated', 'media.deleted'] as const;

/** The uid of a content type. */
export type ContentTypeUid = `${string}::${string}`;

export const FILE = 'plugin::upload.file' satisfies ContentTypeUid;

export interface EventAboutEntry {
  event: string;
  data: unknown;
  subject: Subject;
}

const LABEL_MAX = 200;
const TEXTS = new Set(['string', 'text', 'email', 'uid']);
const FIRST_CHOICES = ['name', 'title'];

/** What a person calls it: its name or title, else the first of its short texts, else its id. */
const labelOf = ({ fields }: Shape, entry: EntryValue): string => {
  const texts = fields.flatMap(([name, field]) =>
    field.kind === 'scalar' && TEXTS.has(field.type) && name !== 'locale' ? [name] : []
  );
  const names = [...FIRST_CHOICES.filter((name) => texts.includes(name)), ...texts];
  const label = names.map((name) => lineOf(entry[name], LABEL_MAX)).find((text) => text !== '');
  return label ?? String(entry.documentId);
};

/** The event of a change: its name, its `data` and the record that it is about. */
export const eventOf = (
  uid: ContentTypeUid,
  shape: Shape,
  { action, version, changed }: EntryChange
): EventAboutEntry => {
  const { locale, status, entry } = version;
  const subject: Subject = {
    type: uid,
    id: String(entry.documentId),
    label: labelOf(shape, entry),
  };
  const rest = changed === undefined ? {} : { changed };
  return uid === FILE
    ? { event: `media.${action}`, data: { media: entry, ...rest }, subject }
    : {
        event: `entry.${action}`,
        data: { content_type: uid, locale, status, entry, ...rest },
        subject,
      };
};
