/** What of one attribute a payload carries. */
export type FieldShape =
  | { readonly kind: 'scalar'; readonly type: string; readonly values?: readonly string[] }
  | {
      readonly kind: 'relation';
      readonly many: boolean;
      /** To entries of several types: each then says which type it is of. */
      readonly morph: boolean;
      /** This side keeps the order of what it relates to; the other side has none. */
      readonly ordered: boolean;
      /** What it relates to has drafts. */
      readonly drafts: boolean;
    }
  | { readonly kind: 'media'; readonly many: boolean; readonly file: Shape }
  | { readonly kind: 'component'; readonly many: boolean; readonly shape: Shape }
  | { readonly kind: 'zone'; readonly shapes: ReadonlyMap<string, Shape> };

/**
 * The public attributes of a content type or a component, in their order: nothing that is not named
 * here gets into a payload. `id` and `documentId` come before them.
 */
export interface Shape {
  readonly fields: readonly (readonly [name: string, field: FieldShape])[];
}

export type EntryStatus = 'draft' | 'published';

/** What a receiver is told of an entry or a file: as REST shows it, relations as `{ documentId }`. */
export type EntryValue = Readonly<Record<string, unknown>>;

/** One row of a document: of one language, draft or published. */
export interface Version {
  readonly row: number;
  /** null: the type has no languages. */
  readonly locale: string | null;
  /** `published` where the type has no drafts. */
  readonly status: EntryStatus;
  readonly entry: EntryValue;
}
