import dns from 'node:dns';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { type Post, Poster, type PosterOptions, type Posted } from './post';

/** How names are resolved: what a site's code has chosen holds for its own thread alone. */
export interface NameSettings {
  servers: readonly string[];
  order: ReturnType<typeof dns.getDefaultResultOrder>;
}

/** What a thread that sends is given: attempts, each with a number by which it is answered. */
export interface Batch {
  /** From now on, if they have changed. */
  names?: NameSettings;
  posts: readonly (readonly [number, Post])[];
}

/** What it answers with, in the order in which they ended. */
export type Answers = readonly (readonly [number, Posted])[];

const serve = (port: MessagePort): void => {
  const poster = new Poster(workerData as PosterOptions);
  let ended: [number, Posted][] = [];
  const answer = (): void => {
    port.postMessage(ended satisfies Answers);
    ended = [];
  };
  port.on('message', ({ names, posts }: Batch) => {
    if (names) {
      dns.setServers(names.servers);
      dns.setDefaultResultOrder(names.order);
    }
    for (const [number, post] of posts) {
      void poster.post(post).then((posted) => {
        // All that end in one turn of the event loop are one message.
        if (ended.push([number, posted]) === 1) setImmediate(answer);
      });
    }
  });
};

if (parentPort) serve(parentPort);
