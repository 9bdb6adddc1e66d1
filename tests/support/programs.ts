import { spawnSync } from 'node:child_process';

/**
 * Whether a program of the machine can be run. Where everything is required (REQUIRE_ALL=1) it always
 * is, so that a test that needs it fails instead of being left out.
 * @param args what makes it say its version and end
 */
export const isInstalled = (program: string, ...args: string[]): boolean =>
  process.env.REQUIRE_ALL === '1' ||
  spawnSync(program, args, { stdio: 'ignore', timeout: 20_000 }).status === 0;
