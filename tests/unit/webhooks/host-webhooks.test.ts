import { mapEvents, mapHeaders } from '../../../server/src/webhooks/managing/host-webhooks';

const ENTRIES = ['created', 'updated', 'deleted', 'published', 'unpublished'];

describe('events of the host’s webhooks', () => {
  it('have those of entries and media as counterparts, where they are offered', () => {
    const theirs = ['create', 'update', 'delete', 'publish', 'unpublish'];
    const media = ['media.create', 'media.update', 'media.delete'];
    const mapped = mapEvents([...theirs.map((one) => `entry.${one}`), ...media], () => true);
    expect(mapped).toEqual({
      kept: [
        ...ENTRIES.map((one) => `entry.${one}`),
        'media.created',
        'media.updated',
        'media.deleted',
      ],
      leftOut: [],
    });
  });

  it('say what they wait for where they are not offered', () => {
    const offered = (event: string) => event === 'entry.created';
    const mapped = mapEvents(
      ['entry.create', 'entry.create', 'entry.publish', 'media.create', 'releases.publish'],
      offered
    );
    expect(mapped).toEqual({
      kept: ['entry.created'],
      leftOut: [
        { name: 'entry.publish', reason: expect.stringContaining('sources.entries') },
        { name: 'media.create', reason: expect.stringContaining('sources.media') },
        { name: 'releases.publish', reason: 'has no counterpart' },
      ],
    });
  });
});

describe('headers of the host’s webhooks', () => {
  it('go before those that the host adds to each', () => {
    expect(mapHeaders({ authorization: 'own' }, { Authorization: 'all', 'X-All': 1 })).toEqual({
      kept: { 'X-All': '1', authorization: 'own' },
      leftOut: [],
    });
  });

  it('are left out where they may not be a webhook’s own, and say why', () => {
    const { kept, leftOut } = mapHeaders(
      { Host: 'a', 'X-Strapi-Event': 'b', 'X-Empty': null, 'X-Kept': 'c' },
      {}
    );
    expect(kept).toEqual({ 'X-Kept': 'c' });
    expect(leftOut.map(({ name }) => name)).toEqual(['Host', 'X-Strapi-Event', 'X-Empty']);
    expect(leftOut.every(({ reason }) => reason.length > 5)).toBe(true);
  });
});
