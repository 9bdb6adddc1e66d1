/** The place of a delivery in the log, which is newest first: by its time, then by its row's id. */
export interface LogPlace {
  /** Epoch milliseconds. */
  at: number;
  id: number;
}

/** Whether a place comes after another one in the log: it is an older one. */
export const isAfter = (place: LogPlace, other: LogPlace): boolean =>
  place.at < other.at || (place.at === other.at && place.id < other.id);
