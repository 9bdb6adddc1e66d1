import { errors } from '@strapi/utils';
import type { App, Slot } from '../app';
import { codeOf } from '../runtime/refusal';

export const MISSING_KEY_HELP =
  "add `secrets: { encryptionKey: env('ENCRYPTION_KEY') }` to config/admin (admin.secrets.encryptionKey) and set ENCRYPTION_KEY in the environment";

const host = ({ strapi }: Pick<App, 'strapi'>) =>
  strapi.service('admin::encryption') as unknown as Record<
    'encrypt' | 'decrypt',
    (value: string) => string | null
  >;

export const hasEncryptionKey = ({ strapi }: Pick<App, 'strapi'>): boolean =>
  Boolean(strapi.config.get('admin.secrets.encryptionKey'));

/** Encrypts a secret with the host's key; throws ApplicationError (400) with the line to add if there is none. */
export const seal = ({ strapi }: Pick<App, 'strapi'>, secret: string): string => {
  const sealed = hasEncryptionKey({ strapi }) ? host({ strapi }).encrypt(secret) : null;
  if (sealed === null) {
    throw new errors.ApplicationError(
      `Secrets cannot be stored: ${MISSING_KEY_HELP}.`,
      codeOf({ code: 'no_encryption_key' })
    );
  }
  return sealed;
};

/** The secret, or null if the key is missing or is not the one it was encrypted with. */
export const unseal = ({ strapi }: Pick<App, 'strapi'>, sealed: string): string | null => {
  if (!hasEncryptionKey({ strapi })) return null;
  try {
    return host({ strapi }).decrypt(sealed);
  } catch {
    return null;
  }
};

/** So many secrets are kept open at once, and none for longer. */
const KEPT = 10_000;
const KEPT_MS = 10_000;

const kept = (): Slot<Map<string, string | null>> => ({});

/** Cached `unseal`, because opening a secret costs more than signing. Keyed by sealed text, so rotation misses. */
export const unsealOften = (app: App, sealed: string): string | null => {
  const slot = app.part(kept);
  const known = slot.value?.get(sealed);
  if (known !== undefined) return known;
  const secret = unseal(app, sealed);
  if (!slot.value || slot.value.size >= KEPT) {
    slot.value = new Map();
    setTimeout(() => delete slot.value, KEPT_MS).unref();
  }
  slot.value.set(sealed, secret);
  return secret;
};
