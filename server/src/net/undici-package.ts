import type * as Undici from 'undici';
import { errorText } from '../runtime/error-text';

/** What is used of the optional peer package. */
export type UndiciPackage = Pick<typeof Undici, 'Client'>;

const isMissing = (error: unknown): boolean =>
  ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'].includes(
    String((error as { code?: unknown } | null)?.code)
  );

/**
 * Loads the package, which a site installs only for `webhooks.client: 'undici'`.
 * @throws Error that says what to install; the host then refuses to boot.
 */
export const loadUndici = async (): Promise<UndiciPackage> => {
  try {
    const { Client } = await import('undici');
    return { Client };
  } catch (error) {
    const why = isMissing(error) ? 'is not installed' : `could not be loaded (${errorText(error)})`;
    throw new Error(
      `The plugin switchboard: webhooks.client is "undici", and its package ${why}. Run: npm install undici`,
      { cause: error }
    );
  }
};
