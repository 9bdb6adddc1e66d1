import {
  candidates,
  createSystemResolver,
  parseHosts,
  parseSearch,
} from '../../../server/src/net/resolver';

const ADDRESS = [{ address: '93.184.216.34', family: 4 }];

const unknown = () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOTFOUND' }));
const never = () => new Promise<never>(() => undefined);

const files = (hosts = '', search: string[] = []) => ({
  hosts: () => parseHosts(hosts),
  search: () => search,
  version: () => 1,
});

const resolver = (options: Parameters<typeof createSystemResolver>[0]) =>
  createSystemResolver({ files: files(), ask: unknown, lookup: unknown, ...options });

describe('the system resolver', () => {
  it('reads the hosts file first, whatever the case', async () => {
    const resolve = resolver({
      files: files('# a\n10.0.0.7\tReceiver receiver.lan # b\n::7 receiver\nnonsense x\n'),
      ask: never,
    });
    expect(await resolve('receiver')).toEqual([
      { address: '10.0.0.7', family: 4 },
      { address: '::7', family: 6 },
    ]);
    expect(await resolve('RECEIVER.lan.')).toEqual([{ address: '10.0.0.7', family: 4 }]);
  });

  it('knows localhost without asking anybody', async () => {
    const resolve = resolver({ ask: never });
    for (const name of ['localhost', 'a.localhost', 'localhost.']) {
      expect((await resolve(name)).map(({ address }) => address)).toEqual(['127.0.0.1', '::1']);
    }
  });

  it('asks the name servers, with the search list as the system would', async () => {
    const asked: string[] = [];
    const ask = async (name: string) => {
      asked.push(name);
      return name === 'hooks.svc.cluster.local' ? ADDRESS : unknown();
    };
    const resolve = resolver({ files: files('', ['svc.cluster.local', 'lan']), ask });
    expect(await resolve('hooks')).toEqual(ADDRESS);
    expect(asked).toEqual(['hooks.svc.cluster.local']);
    expect(candidates('a.example', ['lan'])).toEqual(['a.example', 'a.example.lan']);
    expect(candidates('a.example.', ['lan'])).toEqual(['a.example']);
    expect(candidates('a', ['lan'])).toEqual(['a.lan', 'a']);
  });

  it('asks the system for what no name server knows', async () => {
    const resolve = resolver({ lookup: async () => ADDRESS });
    expect(await resolve('printer.local')).toEqual(ADDRESS);
    await expect(resolver({})('gone.example')).rejects.toThrow();
  });

  it('lets a name that hangs hold nothing that another needs', async () => {
    const ask = (name: string) =>
      name.startsWith('hang')
        ? never()
        : name === 'good.example'
          ? Promise.resolve(ADDRESS)
          : unknown();
    let held = 0;
    const lookup = () => {
      held += 1;
      return never();
    };
    const resolve = resolver({ ask, lookup });
    for (const name of ['hang1.example', 'hang2.example', 'lost1.example', 'lost2.example']) {
      resolve(name).catch(() => undefined);
    }
    expect(await resolve('good.example')).toEqual(ADDRESS);
    // One thread at most, however many names the system is asked about.
    await new Promise((done) => setImmediate(done));
    expect(held).toBe(1);
  });
});

describe('the search list', () => {
  it.each([
    ['nameserver 127.0.0.1\nsearch a.lan b.lan.\n', ['a.lan', 'b.lan']],
    ['domain one.lan\nsearch two.lan # c\n', ['two.lan']],
    ['', []],
    ['search .\n', []],
  ])('of %j', (text, expected) => expect(parseSearch(text)).toEqual(expected));
});
