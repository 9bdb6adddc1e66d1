import type { FailureCause } from '../../net/attempt-outcome';

type OtherCause =
  | 'redirect'
  | 'secret_unavailable'
  | 'body_missing'
  | 'imported'
  | 'interrupted'
  | 'discarded'
  | 'skipped'
  | 'webhook_deleted';

/** Why a delivery fails, with what helps, for somebody who has not read the documentation. */
const TEXTS: Readonly<Record<FailureCause | OtherCause, string>> = {
  dns: 'The host name could not be found. Check its spelling and its DNS record.',
  refused:
    'The connection was refused: nothing listens at this address, or a firewall turns it away.',
  unreachable: 'The host could not be reached over the network.',
  tls: 'The secure connection could not be made. Check the certificate of the receiver: its date, its name and its chain.',
  timeout:
    'There was no complete answer in time. A receiver should answer at once and do its work afterwards.',
  closed: 'The receiver closed the connection before its answer was complete.',
  blocked_address:
    'The address belongs to this server or to a private network. Sending there is refused unless the option webhooks.allowPrivateNetworks allows it.',
  invalid_request:
    'The request cannot be sent as it is. Check the address and what plugins add to it.',
  invalid_response: 'What came back is not valid HTTP.',
  aborted: 'The site was shut down during this try. It does not count.',
  unknown: 'The request failed.',
  redirect:
    'The receiver redirects to another address. Redirects are not followed: enter the final address.',
  secret_unavailable:
    'The secret or a header of its own can no longer be decrypted because the encryption key of the site has changed. Rotate the secret and give the headers anew.',
  body_missing: 'What was to be sent is gone from the database: somebody has deleted it.',
  imported: 'It came with an import or a copied database. The site that it came from sends it.',
  discarded: 'Whoever switched the webhook on did not want it to be sent any more.',
  skipped: 'Somebody skipped it, so that later ones of its record could be sent.',
  webhook_deleted: 'Its webhook was deleted while the event was written.',
  interrupted: 'It was a test, and the process that made it ended meanwhile.',
};

/** Every cause of a failure but those of a receiver's status. */
export const CAUSES: readonly string[] = Object.keys(TEXTS);

const STATUS_TEXTS: Readonly<Record<number, string>> = {
  400: 'it does not understand the request. Its own log says what it missed.',
  401: 'it wants a login, or does not accept the signature. Compare the secret on both sides.',
  403: 'it refuses the request. Look for a firewall, or a signature that does not match.',
  404: 'there is nothing at this address. Check the path.',
  410: 'this address is gone for good. Enter the new one or delete the webhook.',
  429: 'it was asked too often.',
};

const ofStatus = (status: number): string =>
  `The receiver answered ${status}: ${
    STATUS_TEXTS[status] ??
    (status >= 500
      ? 'it broke down while it handled the event. Its own log says why.'
      : 'only an answer from 200 to 299 counts as received.')
  }`;

/** A cause as the log has it, in words; null for one that says enough by itself. */
export const causeText = (cause: string): string | null => {
  const [, status] = /^http_(\d{3})$/.exec(cause) ?? [];
  if (status) return ofStatus(Number(status));
  return Object.hasOwn(TEXTS, cause) ? TEXTS[cause as keyof typeof TEXTS] : null;
};
