import { createHmac } from 'node:crypto';

/** Gives that many unpredictable bytes; `randomBytes` of `node:crypto` in production. */
export type RandomSource = (size: number) => Uint8Array;

/** 32 characters that nobody mistakes for one another when they copy by eye: no 0, 1, l or o. */
const ALPHABET = 'abcdefghijkmnpqrstuvwxyz23456789';
const GROUPS = 7;
const GROUP_LENGTH = 4;

/** A new application password as its owner sees it: seven groups of four, 140 random bits. */
export const generateApplicationPassword = (random: RandomSource): string =>
  Array.from({ length: GROUPS }, () =>
    Array.from(random(GROUP_LENGTH), (byte) => ALPHABET[byte % ALPHABET.length]).join('')
  ).join(' ');

/** The spaces are there for the eye only: with, without or with other ones, it is the same password. */
export const normalizeApplicationPassword = (typed: string): string => typed.replace(/\s+/g, '');

/**
 * What is stored in place of an application password: HMAC-SHA512 under the site's
 * `admin.apiToken.salt`, just as the host stores its API tokens. A slow hash would protect nothing:
 * 140 random bits cannot be guessed, and it would have to be paid on every request. Being
 * deterministic it can be looked up by index, so no secret is ever compared byte by byte.
 */
export const hashApplicationPassword = (typed: string, salt: string): string =>
  createHmac('sha512', salt).update(normalizeApplicationPassword(typed)).digest('hex');
