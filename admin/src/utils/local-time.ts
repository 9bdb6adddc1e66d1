/** `2030-01-31T09:15` in the reader's own time, as the browser's field has it. */
export const localTime = (iso: string | undefined): string => {
  const at = iso === undefined ? NaN : Date.parse(iso);
  if (Number.isNaN(at)) return '';
  return new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
};

/** The field's value as an instant; undefined if it is empty. */
export const instantOf = (local: string): string | undefined => {
  const at = Date.parse(local);
  return Number.isNaN(at) ? undefined : new Date(at).toISOString();
};
