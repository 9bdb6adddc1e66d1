/** A date that a status carries along: set by the plugin when a record comes into that status. */
export interface DerivedDate {
  status: string;
  value: string;
  date: string;
  /** The date goes again when the record leaves the status; otherwise it is history. */
  current?: true;
}

/** By content type. */
export const DERIVED_DATES: Readonly<Record<string, readonly DerivedDate[]>> = {
  'plugin::switchboard.contact': [
    { status: 'contact_status', value: 'subscribed', date: 'subscribed_at' },
    { status: 'contact_status', value: 'unsubscribed', date: 'unsubscribed_at' },
  ],
  'plugin::switchboard.deal': [
    { status: 'deal_status', value: 'won', date: 'closed_at', current: true },
    { status: 'deal_status', value: 'lost', date: 'closed_at', current: true },
  ],
  'plugin::switchboard.task': [
    { status: 'task_status', value: 'done', date: 'completed_at', current: true },
  ],
  'plugin::switchboard.campaign': [{ status: 'campaign_status', value: 'sent', date: 'sent_at' }],
};

type Data = Record<string, unknown>;

/** Dates of a new record; one that is given stays (an import knows better than the clock). */
export const deriveDates = (uid: string, data: Data, now: Date): void => {
  for (const { status, value, date } of DERIVED_DATES[uid] ?? []) {
    if (data[status] === value) data[date] ??= now;
  }
};

/** The derived that an update may set on the records that do not have the status yet. */
export const derivedDateToSet = (uid: string, data: Data): DerivedDate | null =>
  (DERIVED_DATES[uid] ?? []).find(
    ({ status, value, date }) => data[status] === value && data[date] === undefined
  ) ?? null;

/** Empties the dates of a status that an update leaves: a deal that is open again was not closed. */
export const clearLeftDates = (uid: string, data: Data): void => {
  const dates = (DERIVED_DATES[uid] ?? []).filter(({ current }) => current);
  for (const { status, date } of dates) {
    const given = data[status];
    if (given === undefined || data[date] !== undefined) continue;
    if (!dates.some((derived) => derived.value === given)) data[date] = null;
  }
};
