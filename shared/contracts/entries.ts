/** Which version of a document an event is about; `published` where its type has no drafts. */
export type EntryStatus = 'draft' | 'published';

/** An entry as a full-access token sees it over REST, relations as `{ documentId }`. */
export interface Entry {
  id: number;
  documentId: string;
  [attribute: string]: unknown;
}

/** `data` of `entry.created`, `entry.unpublished` and `entry.deleted`; docs/any-content-type.md. */
export interface EntryEventData<Attributes = Entry> {
  /** The uid of its content type, such as `api::article.article`. */
  content_type: string;
  /** null if the type has no languages. */
  locale: string | null;
  status: EntryStatus;
  entry: Attributes;
}

/** `data` of `entry.updated` and `entry.published`. */
export interface ChangedEntryEventData<Attributes = Entry> extends EntryEventData<Attributes> {
  /** Attributes that differ; empty if what was published again is what was published before. */
  changed: string[];
}

/** A file of the media library as REST shows it. */
export interface MediaFile extends Entry {
  name: string;
  url: string;
  mime: string;
}

/** `data` of `media.created` and `media.deleted`. */
export interface MediaEventData {
  media: MediaFile;
}

/** `data` of `media.updated`. */
export interface ChangedMediaEventData extends MediaEventData {
  changed: string[];
}

/** The `data` of each event about the site's own content, by the event's name. */
export interface ContentEvents {
  'entry.created': EntryEventData;
  'entry.updated': ChangedEntryEventData;
  'entry.published': ChangedEntryEventData;
  'entry.unpublished': EntryEventData;
  'entry.deleted': EntryEventData;
  'media.created': MediaEventData;
  'media.updated': ChangedMediaEventData;
  'media.deleted': MediaEventData;
}
