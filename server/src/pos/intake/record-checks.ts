import { inTurns } from '../../runtime/steps';
import { type EventKind, LIMITS, nodesWithin, type Scope, SCOPE_OF_KIND } from '../rules/states';
import { type RecordOf, recordSteps } from '../rules/validate';
import type { ConnectionRow } from '../tables';
import { Refusal, schemaInvalid } from './answers';

/** The checks of what a record is, wherever it stands. Each throws its Refusal. */

export const tooLarge = (): Refusal =>
  new Refusal('payload_too_large', 'The body is larger than this service takes.');

export const requireSize = (body: Buffer, maxBytes: number): void => {
  if (body.length > maxBytes) throw tooLarge();
};

export const hasScope = ({ scopes }: Pick<ConnectionRow, 'scopes'>, scope: Scope): boolean =>
  (JSON.parse(scopes) as string[]).includes(scope);

/** @param needed  a scope, or a kind of record for the scope that it needs */
export const requireScope = (connection: ConnectionRow, needed: EventKind | Scope): void => {
  const scope = needed in SCOPE_OF_KIND ? SCOPE_OF_KIND[needed as EventKind] : (needed as Scope);
  if (hasScope(connection, scope)) return;
  throw new Refusal('insufficient_scope', `The connection lacks the scope ${scope}.`, {
    required_scope: scope,
  });
};

/** Records of a site that takes larger bodies may have more values. */
const nodesOf = (body: Buffer): number => nodesWithin(Math.max(body.length, LIMITS.bodyBytes));

/** Reads in turns with other requests: whoever sends the largest body there is keeps nobody out. */
export const requireRecord = async <K extends EventKind>(
  kind: K,
  body: Buffer,
  receivedAtMs: number
): Promise<RecordOf<K>> => {
  const reading = await inTurns(recordSteps(kind, body, { receivedAtMs }, nodesOf(body)));
  if (!reading.ok) throw schemaInvalid(kind, reading.issue);
  return reading.record;
};
