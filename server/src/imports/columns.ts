/** Columns of a file at most. */
export const MAX_COLUMNS = 200;

/** Why a header is refused that has more. */
export const tooManyColumns = ({ length }: readonly string[]): string =>
  `there are ${length} columns, and at most ${MAX_COLUMNS} are imported`;
