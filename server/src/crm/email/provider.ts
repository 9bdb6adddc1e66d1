/** What a provider's post says, in our own words. */
export type ProviderEvent = {
  /** The provider's id of it, the same when it is posted again; else one made of its content. */
  id: string;
  /** The contact's address. */
  email: string;
  /** The CRM's campaign, as the sender gave it to the provider in a custom variable. */
  campaign: string | null;
} & (
  | ({ type: 'opened' } & Seen)
  | ({ type: 'clicked'; url: string } & Seen)
  | { type: 'bounced'; hard: boolean; reason: string | null }
  | { type: 'complained' }
  | { type: 'unsubscribed' }
  | { type: 'received'; subject: string | null; from: string | null; text: string | null }
);

interface Seen {
  userAgent: string | null;
  ip: string | null;
  /** Epoch milliseconds. */
  at: number;
  sentAt: number | null;
  /** The provider itself says that a machine did it. */
  machine: boolean;
}

/** A post as it came. */
export interface ProviderPost {
  bytes: Buffer;
  contentType: string;
  header(name: string): string | undefined;
}

/** A post whose signature holds. */
export interface SignedPost {
  events: ProviderEvent[];
  /**
   * Where the signature covers a token and not the body: the token, and what it came with first. With
   * anything else it is refused. Null where the signature covers the body.
   */
  once: { token: string; content: string } | null;
}

/** `null` from `read`: the signature does not hold, or not any more. */
export interface Provider {
  read(post: ProviderPost): Promise<SignedPost | null>;
}
