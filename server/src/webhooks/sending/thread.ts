import os from 'node:os';
import { workerData } from 'node:worker_threads';
import { type NameSettings, setNames } from '../../net/resolver';
import { Lanes, serveThread, type UNBEGUN } from '../../runtime/threads';
import { type Post, Poster, type PosterOptions, type Posted } from './post';

export interface SendingThread extends PosterOptions {
  atOnce: number;
  /** Counts the changes of webhooks, in memory that is shared with this thread. */
  changes: Int32Array;
}

/** A thread that sends: what it is given is posted, or given back if webhooks have changed meanwhile. */
const { atOnce, changes, ...options } = workerData as SendingThread;
const poster = new Poster(options);
const isStale = (post: Post): boolean => post.revision !== Atomics.load(changes, 0);
const lanes = new Lanes<Post, Posted>(atOnce, (post) => poster.post(post), isStale);
try {
  // Only there it is this thread's own: the site's goes first where both want a core.
  if (process.platform === 'linux') os.setPriority(Math.min(19, os.getPriority() + 5));
} catch {
  // It sends without.
}
serveThread<Post, Posted | typeof UNBEGUN>(
  (post) => lanes.run(post),
  (names) => setNames(names as NameSettings)
);
