const load = () => import('../../../scripts/lib/start-options.mjs');

/** What `npm start` makes of its flags: a wrong one is refused with those that there are. */
describe('the flags of npm start', () => {
  const read = async (argv: string[], env: Record<string, string> = {}) =>
    (await load()).readStartOptions(argv, env);
  const refusal = async (argv: string[], env: Record<string, string> = {}) =>
    read(argv, env).then(
      () => '',
      (error: Error) => error.message
    );

  it('begin on the data that is there, with the database alone', async () => {
    expect(await read([])).toMatchObject({ help: false, fresh: false, engine: 'database' });
  });

  it('take --fresh and --help', async () => {
    expect(await read(['--fresh'])).toMatchObject({ fresh: true });
    expect(await read(['--help'])).toMatchObject({ help: true });
    expect(await read(['-h'])).toMatchObject({ help: true });
  });

  it.each([[['--engine', 'bullmq']], [['--engine=bullmq']]])('take %j', async (argv) => {
    expect(await read(argv)).toMatchObject({ engine: 'bullmq', redis: 'redis://127.0.0.1:6379' });
  });

  it('take the Redis from REDIS_URL', async () => {
    const env = { REDIS_URL: 'rediss://user:secret@redis.example:6390/2' };
    expect(await read(['--engine', 'bullmq'], env)).toMatchObject({ redis: env.REDIS_URL });
    const message = await refusal(['--engine', 'bullmq'], {
      REDIS_URL: 'http://user:secret@redis',
    });
    expect(message).toContain('REDIS_URL is no address of a Redis');
    expect(message).not.toContain('secret');
  });

  it.each(['redis', 'BullMQ', ''])(
    'refuse the engine %j with those that there are',
    async (name) => {
      expect(await refusal(['--engine', name])).toBe(
        `There is no engine "${name}": --engine takes database or bullmq.`
      );
    }
  );

  it('say that --engine needs a name', async () => {
    expect(await refusal(['--engine'])).toBe('--engine needs a name: database or bullmq.');
    expect(await refusal(['--engine', '--fresh'])).toBe(
      '--engine needs a name: database or bullmq.'
    );
  });

  it.each(['--frehs', '--port=1', '-x', 'fresh'])(
    'refuse %j with the flags there are',
    async (arg) => {
      expect(await refusal([arg])).toBe(
        `npm start cannot take ${arg}. It takes --fresh, --engine database|bullmq and --help.`
      );
    }
  );

  it('say where npm kept a flag for itself', async () => {
    expect(await refusal([], { npm_config_fresh: 'true' })).toContain('npm start -- --fresh');
    expect(await refusal(['bullmq'], { npm_config_engine: 'bullmq' })).toContain(
      'npm start -- --engine bullmq'
    );
  });

  it('are all in the help', async () => {
    const { HELP } = await load();
    for (const part of ['--fresh', '--engine', 'bullmq', '--help', 'TILL_PORT', 'REDIS_URL']) {
      expect(HELP).toContain(part);
    }
  });
});
