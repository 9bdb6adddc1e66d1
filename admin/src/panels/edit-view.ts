/** What the content manager tells a panel beside an entry. */
export interface EditView {
  /** The content type's uid. */
  model: string;
  /** Absent while an entry is being made. */
  documentId?: string;
}
