/**
 * What of an error may go into a log: its name, its code, and a capped message. Never a statement:
 * knex puts the whole SQL with its values before the driver's reason, and values hold payloads.
 */
export const errorText = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error).slice(0, 200);
  const { code } = error as { code?: unknown };
  const reason = error.message.split(' - ').at(-1) ?? '';
  const message =
    typeof code === 'string' && /sql|knex/i.test(error.stack ?? '') ? reason : error.message;
  return [error.name, typeof code === 'string' ? code : '', message.slice(0, 200)]
    .filter(Boolean)
    .join(' ');
};
