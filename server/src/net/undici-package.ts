import type * as Undici from 'undici';
import { loadOptional } from '../runtime/optional-package';

/** What is used of the optional package. */
export type UndiciPackage = Pick<typeof Undici, 'Client'>;

/**
 * Loads the package, which a site installs only for `webhooks.client: 'undici'`.
 * @throws Error that says what to install; the host then refuses to boot.
 */
export const loadUndici = async (): Promise<UndiciPackage> => {
  const [loaded] = await loadOptional('webhooks.client is "undici"', ['undici']);
  const { Client } = loaded as typeof Undici;
  return { Client };
};
