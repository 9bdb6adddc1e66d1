import { changedFields } from './changed';
import type { Shape, Version } from './shape';

export type EntryAction = 'created' | 'updated' | 'published' | 'unpublished' | 'deleted';

/** Something that happened to one version of a document. */
export interface EntryChange {
  readonly action: EntryAction;
  /** As it is now; of what was deleted or unpublished, as it was last. */
  readonly version: Version;
  readonly changed?: readonly string[];
}

/** One document before and after one business change. */
export interface DocumentChange {
  readonly shape: Shape;
  readonly draftAndPublish: boolean;
  readonly before: readonly Version[];
  readonly after: readonly Version[];
  /** The languages of which a draft is there afterwards. */
  readonly drafts: ReadonlySet<string | null>;
  /** Its content was written anew, whether it differs or not: a file was replaced. */
  readonly rewritten?: boolean;
}

interface Pair {
  before?: Version;
  after?: Version;
}

type Group = Pair & { draft: Pair };

const byLocale = ({ before, after }: DocumentChange): Map<string | null, Group> => {
  const groups = new Map<string | null, Group>();
  const put = (when: keyof Pair, version: Version): void => {
    const group = groups.get(version.locale) ?? { draft: {} };
    (version.status === 'draft' ? group.draft : group)[when] = version;
    groups.set(version.locale, group);
  };
  for (const version of before) put('before', version);
  for (const version of after) put('after', version);
  return groups;
};

/** What happened to a version that is written in place: an entry without drafts, or a draft. */
const ofPlain = ({ shape, rewritten }: DocumentChange, { before, after }: Pair): EntryChange[] => {
  if (!after) return before ? [{ action: 'deleted', version: before }] : [];
  if (!before) return [{ action: 'created', version: after }];
  const changed = changedFields(shape, before.entry, after.entry);
  return changed.length > 0 || rewritten ? [{ action: 'updated', version: after, changed }] : [];
};

/** Each publish writes a new row, so another row than before was published, the same one edited. */
const ofPublished = (change: DocumentChange, { before, after }: Pair): EntryChange[] => {
  if (!after) {
    if (!before) return [];
    const action = change.drafts.has(before.locale) ? 'unpublished' : 'deleted';
    return [{ action, version: before }];
  }
  if (before?.row === after.row) return ofPlain(change, { before, after });
  const changed = changedFields(change.shape, before?.entry ?? null, after.entry);
  return [{ action: 'published', version: after, changed }];
};

/**
 * What happened to a document, by language: drafts before what is published, and one deletion a
 * language, with what was published where something was. docs/any-content-type.md#events
 */
export const derive = (change: DocumentChange): EntryChange[] =>
  [...byLocale(change).values()].flatMap((group) => {
    if (!change.draftAndPublish) return ofPlain(change, group);
    const published = ofPublished(change, group);
    const isDeleted = published.some(({ action }) => action === 'deleted');
    const drafts = isDeleted && !group.draft.after ? [] : ofPlain(change, group.draft);
    return [...drafts, ...published];
  });
