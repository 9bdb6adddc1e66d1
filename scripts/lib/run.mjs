import { spawn } from 'node:child_process';
import { ROOT } from './paths.mjs';

const running = new Set();

/**
 * Runs a program in the repository's root with this terminal, and resolves with its exit code
 * (1 where a signal ended it).
 * @param {string} program
 * @param {string[]} args
 * @param {import('node:child_process').SpawnOptions} [options]
 * @returns {Promise<number>}
 */
export const run = (program, args, options = {}) =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: ROOT,
      stdio: ['ignore', 'inherit', 'inherit'],
      ...options,
    });
    running.add(child);
    child.once('error', reject);
    child.once('close', (code) => {
      running.delete(child);
      resolve(code ?? 1);
    });
  });

/** As `run`, but throws where the program fails. */
export const mustRun = async (what, program, args, options) => {
  const code = await run(program, args, options);
  if (code !== 0) throw new Error(`${what} failed (exit code ${code}).`);
};

/** Ends what `run` has under way: a signal that was sent to this process alone did not reach it. */
export const endRunning = () => {
  for (const child of running) child.kill('SIGTERM');
};
