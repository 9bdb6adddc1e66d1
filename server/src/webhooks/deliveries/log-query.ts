import { fieldError } from '../../http/validation';
import type {
  DeliveryState,
  DeliveryStatus,
  SubjectType,
} from '../../../../shared/contracts/webhooks';
import type { Search } from './log';
import { type DeliveryFilter, type LogCursor, parseCursor } from './log-filter';

const DELIVERY_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Whether a text is the whole id of a delivery, as its receiver knows it. */
export const isDeliveryId = (text: string): boolean => DELIVERY_ID.test(text);

const timeOf = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : Date.parse(text);

/** The log's filters as a request has them; docs/contract-webhooks.md#the-log-of-deliveries. Times are ISO 8601. */
interface LogQuery {
  webhook?: number;
  event?: string;
  status?: DeliveryStatus;
  state?: readonly DeliveryState[];
  cause?: string;
  subject_type?: SubjectType;
  subject_id?: string;
  from?: string;
  to?: string;
  q?: string;
  recovery?: number;
}

/**
 * What the log is asked for by a query. A whole delivery id in `q` is found by its index; any other
 * text has to be looked for, and so have records of a type.
 * @returns the filter, and what is to be looked for, or null
 */
export const filterOf = (query: LogQuery): { filter: DeliveryFilter; search: Search | null } => {
  const { webhook, event, status, state, cause, subject_type, subject_id, from, to, q, recovery } =
    query;
  const isId = q !== undefined && isDeliveryId(q);
  const ofOneType = subject_id === undefined ? subject_type : undefined;
  const text = isId ? undefined : q;
  return {
    filter: {
      webhook,
      event,
      status,
      states: state,
      cause,
      subjectType: ofOneType === undefined ? subject_type : undefined,
      subjectId: subject_id,
      from: timeOf(from),
      to: timeOf(to),
      deliveryId: isId ? q.toLowerCase() : undefined,
      recovery,
    },
    search: text === undefined && ofOneType === undefined ? null : { text, subjectType: ofOneType },
  };
};

/** @throws ValidationError (400) for a cursor that a search made, or did not make */
export const cursorOf = (cursor: string | undefined, search: Search | null): LogCursor | null => {
  const parsed = cursor === undefined ? null : parseCursor(cursor);
  if (parsed && (parsed.searched !== null) !== (search !== null)) {
    throw fieldError('cursor', 'is of a page of another search');
  }
  return parsed;
};
