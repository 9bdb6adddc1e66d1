/** Types of `seed.mjs` for the tests. */
export const preparePlayground: (where: {
  siteUrl: string;
  receiverUrl: string;
  dataFolder: string;
  /** The site's SQLite database. */
  databaseFile: string;
  withWeek: boolean;
  /** Sets how the receiver answers from now on. */
  answerWith(mode: 'ok' | 'fail'): Promise<unknown>;
  onSecret(secret: string): void;
}) => Promise<{
  login?: { email: string; password: string };
  apiToken?: string;
  hasWeek: boolean;
  startedAt?: string;
}>;
