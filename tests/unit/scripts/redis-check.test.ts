import net from 'node:net';

const check = async (url: string): Promise<string> => {
  const { requireRedis } = await import('../../../scripts/lib/redis-check.mjs');
  return requireRedis(url).then(
    () => 'there',
    (error: Error) => error.message
  );
};

/** `npm start -- --engine bullmq` where Redis cannot be used: it says so before anything starts. */
describe('the Redis of npm start', () => {
  let server: net.Server;
  let answer: (text: string) => string | undefined;
  let port: number;

  beforeAll(async () => {
    server = net.createServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (bytes) => {
        const text = answer(bytes.toString());
        if (text !== undefined) socket.write(text);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    port = (server.address() as net.AddressInfo).port;
  });
  afterAll(() => new Promise((resolve) => server.close(resolve)));

  it('is named with its place where nothing listens there, and without its password', async () => {
    const closed = net.createServer();
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
    const { port: free } = closed.address() as net.AddressInfo;
    await new Promise((resolve) => closed.close(resolve));
    const said = await check(`redis://user:hidden@127.0.0.1:${free}`);
    expect(said).toContain(`127.0.0.1:${free} does not answer as one (ECONNREFUSED)`);
    expect(said).toContain('REDIS_URL=');
    expect(said).not.toContain('hidden');
  });

  it('is refused where something else listens', async () => {
    answer = () => 'HTTP/1.1 400 Bad Request\r\n\r\n';
    expect(await check(`redis://127.0.0.1:${port}`)).toContain(
      `127.0.0.1:${port} does not answer as one (`
    );
  });
});
