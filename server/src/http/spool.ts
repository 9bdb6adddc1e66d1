import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/**
 * Reads a request's body to its end, into a temporary file, and works on that. Node gives a request
 * five minutes to arrive (`server.http.serverOptions.requestTimeout`), and a body that is read only as
 * fast as it is worked on counts as one that has not arrived.
 * @param work  is given the file as a stream, and its name
 * @throws what the body or the disk fails with; nothing has been worked on then
 */
export const withSpooled = async <T>(
  body: Readable,
  work: (file: Readable, name: string) => Promise<T>
): Promise<T> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'switchboard-'));
  try {
    const name = path.join(folder, 'body');
    await pipeline(body, createWriteStream(name, { mode: 0o600 }));
    const file = createReadStream(name);
    try {
      return await work(file, name);
    } finally {
      file.destroy();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};
