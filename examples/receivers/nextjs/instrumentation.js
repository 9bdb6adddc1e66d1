/** Runs when the server has started. `node --import ./require-secret.mjs` asks before it listens. */
export async function register() {
  if (process.env.NEXT_RUNTIME === 'nodejs') await import('./require-secret.mjs');
}
