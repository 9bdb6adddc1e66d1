/** A permission of the host, as far as it says what is allowed. */
export interface Grant {
  action: string;
  /** The content type it is about; none for the plugin's own actions. */
  subject?: string | null;
  properties?: Record<string, unknown>;
}

export const grantKey = ({ action, subject }: Grant): string =>
  subject ? `${action}|${subject}` : action;

/**
 * What the role still has to be given. `offered` are the keys of all that it was ever given: what
 * is among them and not in the role any more was taken away by somebody, and stays away. What a
 * later version of the plugin brings is not among them, and is given once.
 */
export const grantsToOffer = <G extends Grant>(
  wanted: readonly G[],
  offered: readonly string[]
): G[] => {
  const known = new Set(offered);
  return wanted.filter((grant) => !known.has(grantKey(grant)));
};
