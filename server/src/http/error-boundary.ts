import { errors } from '@strapi/utils';
import type { Context, Next } from 'koa';
import { framesOf } from '../database/errors';
import { errorText } from '../runtime/text';

/** Errors that are answers: the host tells the client what they say, and logs nothing. */
const isAnswer = (error: unknown): boolean =>
  error instanceof errors.ApplicationError ||
  error instanceof errors.HttpError ||
  (error as { expose?: unknown } | null)?.expose === true;

/**
 * The host logs whatever else a controller throws, whole: of a database's error that is the
 * statement with the values of the request. Here such an error is put into words that may be
 * logged, with the frames of its stack.
 */
export const boundErrors = async (_ctx: Context, next: Next): Promise<void> => {
  try {
    await next();
  } catch (error) {
    if (isAnswer(error)) throw error;
    const bounded = new Error(errorText(error));
    bounded.stack = `${bounded.message}\n${error instanceof Error ? framesOf(error) : ''}`;
    throw Object.assign(bounded, { status: (error as { status?: unknown } | null)?.status });
  }
};
