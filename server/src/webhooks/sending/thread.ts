import { workerData } from 'node:worker_threads';
import { type NameSettings, setNames } from '../../net/resolver';
import { serveThread } from '../../runtime/threads';
import { type Post, Poster, type PosterOptions, type Posted } from './post';

/** A thread that sends: what it is given is posted. */
const poster = new Poster(workerData as PosterOptions);
serveThread<Post, Posted>(
  (post) => poster.post(post),
  (names) => setNames(names as NameSettings)
);
