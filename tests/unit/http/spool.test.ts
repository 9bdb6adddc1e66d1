import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { withSpooled } from '../../../server/src/imports/upload';

// A folder of its own: tests that run at the same time leave theirs in the system's.
const temporary = fs.mkdtempSync(path.join(os.tmpdir(), 'spool-'));
beforeAll(() => void jest.spyOn(os, 'tmpdir').mockReturnValue(temporary));
afterAll(() => {
  jest.restoreAllMocks();
  fs.rmSync(temporary, { recursive: true });
});

const folders = () => fs.readdirSync(temporary);

const textOf = async (file: Readable): Promise<string> => {
  const chunks: Buffer[] = [];
  for await (const chunk of file) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
};

describe('a body that is spooled', () => {
  it('has arrived to its end before anybody works on it', async () => {
    let sent = 0;
    const body = Readable.from(
      (function* () {
        for (; sent < 200; sent += 1) yield Buffer.alloc(10_000, 'a');
      })()
    );
    const seen = await withSpooled(body, async (file) => [sent, (await textOf(file)).length]);
    expect(seen).toEqual([200, 2_000_000]);
  });

  it('is worked on once and leaves nothing behind', async () => {
    const before = folders();
    const within = await withSpooled(Readable.from(['a', 'b']), async (file) => {
      expect(folders()).toHaveLength(before.length + 1);
      return textOf(file);
    });
    expect([within, folders()]).toEqual(['ab', before]);
  });

  it('leaves nothing behind where the work fails or stops early', async () => {
    const before = folders();
    const failing = withSpooled(Readable.from(['a']), () => Promise.reject(new Error('no')));
    await expect(failing).rejects.toThrow('no');
    await withSpooled(Readable.from(['a']), () => Promise.resolve());
    expect(folders()).toEqual(before);
  });

  it('is open before it is worked on: opening later, after a quick failure, would end the process', async () => {
    const read = await withSpooled(Readable.from(['a']), (file, name) => {
      fs.rmSync(path.dirname(name), { recursive: true });
      return textOf(file);
    });
    expect(read).toBe('a');
  });

  it('is not worked on where it breaks off', async () => {
    const before = folders();
    const work = jest.fn();
    const body = new Readable({
      read() {
        this.destroy(new Error('aborted'));
      },
    });
    await expect(withSpooled(body, work)).rejects.toThrow('aborted');
    expect([work.mock.calls, folders()]).toEqual([[], before]);
  });
});
