import type { IncomingMessage } from 'node:http';

/** A content type that no parser of a site takes for its own. */
const UNPARSED_TYPE = 'application/vnd.switchboard.raw';

const types = new WeakMap<IncomingMessage, string>();

/**
 * Hides what a body is from the parsers that come after: the host's would read it whole and keep no
 * bytes, and throws where somebody has read it already. To be called in a middleware before them.
 */
export const leaveUnparsed = (request: IncomingMessage): void => {
  types.set(request, request.headers['content-type'] ?? '');
  request.headers['content-type'] = UNPARSED_TYPE;
};

/** The content type that a request came with which was left unparsed. */
export const typeOfUnparsed = (request: IncomingMessage): string => types.get(request) ?? '';
