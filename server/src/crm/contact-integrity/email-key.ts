import { createHash } from 'node:crypto';

/** How addresses are compared: without regard to case or to spaces around them. */
export const normalizeEmail = (email: string): string => email.trim().toLowerCase();

/**
 * What the database compares for uniqueness. A digest, because collations differ: MySQL's default
 * one would take `jose@…` and `josé@…` for one address.
 * @returns null where there is no address: many contacts may have none.
 */
export const emailKey = (email: unknown): string | null =>
  typeof email === 'string' && email.trim() !== ''
    ? createHash('sha256').update(normalizeEmail(email)).digest('hex')
    : null;
