/** A CRM object as REST and events carry it. */
export type Payload = { id: string } & Record<string, unknown>;

/** A tag inside `contact.tagged` and `contact.untagged`. */
export interface TagRef {
  id: string;
  slug: unknown;
  name: unknown;
}
