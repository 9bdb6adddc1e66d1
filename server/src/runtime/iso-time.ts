/** ISO 8601 with an explicit numeric offset, such as `2030-01-31T09:15:00.000+00:00`. */
export const isoTime = (epochMs: number): string =>
  new Date(epochMs).toISOString().replace('Z', '+00:00');

/** The same for a stored time, which PostgreSQL and MySQL hand out as text. */
export const isoTimeOrNull = (epochMs: number | string | null | undefined): string | null =>
  epochMs === null || epochMs === undefined ? null : isoTime(Number(epochMs));
