/** Types of `start-options.mjs` for the tests. */
export const HELP: string;
export const readStartOptions: (
  argv: string[],
  env: Record<string, string | undefined>
) => { help: boolean; fresh: boolean; engine: 'database' | 'bullmq'; redis: string };
