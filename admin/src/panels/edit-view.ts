/** The content manager's props for a panel next to an entry, or an action on it. */
export interface EditView {
  /** The content type's uid. */
  model: string;
  /** Absent while an entry is being made. */
  documentId?: string;
  document?: { trashed_at?: string | null };
}
