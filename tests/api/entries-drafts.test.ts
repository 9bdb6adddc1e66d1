import type * as Http from 'node:http';
import { anyDatabase, describeEach } from '../support/databases';
import { type EntrySite, NOTICE, STORY, useEntrySite, WRITER } from './entries-support';

/** A host's event of an entry, as ours is called. */
const COUNTERPARTS: Readonly<Record<string, string>> = {
  'entry.create': 'entry.created',
  'entry.update': 'entry.updated',
  'entry.publish': 'entry.published',
  'entry.unpublish': 'entry.unpublished',
  'entry.delete': 'entry.deleted',
};

interface HostPost {
  event: string;
  uid: string;
  entry: { documentId: string; locale?: string | null };
}

describeEach(anyDatabase(), 'entries with their drafts', (database) => {
  let at: EntrySite;
  useEntrySite(
    database,
    [{ contentType: STORY, drafts: true }, { contentType: NOTICE, drafts: true }, WRITER],
    (site) => (at = site)
  );

  it('tells of drafts too, and of a deletion once a language', async () => {
    const { documentId } = await at.documents(STORY, 'create', { data: { headline: 'One' } });
    await at.documents(STORY, 'update', { documentId, data: { rank: 1 } });
    await at.documents(STORY, 'update', { documentId, data: { rank: 1 } });
    await at.documents(STORY, 'publish', { documentId });
    await at.documents(STORY, 'update', { documentId, data: { rank: 2 } });
    await at.documents(STORY, 'discardDraft', { documentId });
    await at.documents(STORY, 'update', { documentId, locale: 'fr', data: { headline: 'Un' } });
    await at.documents(STORY, 'unpublish', { documentId });
    await at.documents(STORY, 'publish', { documentId });
    const said = await at.said();
    expect(said).toEqual([
      'created draft en',
      'updated draft en [rank]',
      'published en [headline,rank]',
      'updated draft en [rank]',
      'updated draft en [rank]',
      'created draft fr',
      'unpublished en',
      'published en [headline,rank]',
    ]);
    await at.documents(STORY, 'delete', { documentId, locale: '*' });
    expect((await at.said()).sort()).toEqual(['deleted draft fr', 'deleted en']);
  });

  it("misses nothing that the host's own webhooks are sent, by event, document and language", async () => {
    const posts = await at.site.evaluate(async ({ state, require }) => {
      const http = require('node:http') as typeof Http;
      state.posts = [];
      const server = http.createServer((request, response) => {
        let body = '';
        request.on('data', (part) => (body += part));
        request.on('end', () => {
          state.posts.push(JSON.parse(body));
          response.end('ok');
        });
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      state.hostServer = server;
      return (server.address() as { port: number }).port;
    });
    const made = await at.site.request('POST', '/admin/webhooks', {
      as: 'admin',
      body: {
        name: 'host',
        url: `http://127.0.0.1:${posts}/`,
        headers: {},
        events: Object.keys(COUNTERPARTS),
      },
    });
    expect(made.status).toBe(201);
    await at.log.take();

    const { documents } = at;
    const { documentId: author } = await documents(WRITER, 'create', { data: { name: 'Ada' } });
    await documents(WRITER, 'update', { documentId: author, data: { born: '1815-12-10' } });
    const { documentId } = await documents(STORY, 'create', {
      data: { headline: 'One', writer: author },
    });
    const fr = { documentId, locale: 'fr' };
    await documents(STORY, 'update', { documentId, data: { teaser: 'T' } });
    await documents(STORY, 'update', { ...fr, data: { headline: 'Un' } });
    await documents(STORY, 'publish', { documentId, locale: '*' });
    await documents(STORY, 'unpublish', fr);
    await documents(STORY, 'update', { ...fr, data: { teaser: 'T' }, status: 'published' });
    const { documentId: clone } = await documents(STORY, 'clone', { documentId, locale: '*' });
    await documents(STORY, 'delete', { documentId: clone, locale: '*' });
    const notice = await documents(NOTICE, 'create', { data: { words: 'Hello', level: 1 } });
    await documents(NOTICE, 'update', {
      documentId: notice.documentId,
      locale: 'fr',
      data: { words: 'Bonjour' },
    });
    await documents(NOTICE, 'delete', { documentId: notice.documentId, locale: '*' });
    const managed = await at.site.request(
      'POST',
      `/content-manager/collection-types/${STORY}/actions/publish`,
      { as: 'admin', body: { headline: 'Managed' } }
    );
    expect([200, 201]).toContain(managed.status);
    const { documentId: managedId } = managed.body.data;
    await at.site.request(
      'POST',
      `/content-manager/collection-types/${STORY}/actions/bulkUnpublish`,
      { as: 'admin', body: { documentIds: [managedId] } }
    );
    await at.site.request(
      'POST',
      `/content-manager/collection-types/${STORY}/actions/bulkPublish`,
      {
        as: 'admin',
        body: { documentIds: [managedId] },
      }
    );
    await at.site.request('POST', `/content-manager/collection-types/${STORY}/actions/bulkDelete`, {
      as: 'admin',
      body: { documentIds: [managedId] },
    });
    await documents(WRITER, 'delete', { documentId: author });

    const hostPosts = (await at.site.evaluate(async ({ state }) => {
      // The host posts after its commits, from a queue: until nothing came for a while.
      for (let quiet = 0, seen = -1; quiet < 10; quiet += 1) {
        await new Promise((resolve) => setTimeout(resolve, 100));
        if (state.posts.length !== seen) quiet = 0;
        seen = state.posts.length;
      }
      state.hostServer.closeAllConnections();
      state.hostServer.close();
      return state.posts;
    })) as HostPost[];
    const key = (event: string, uid: string, id: string, locale: string | null) =>
      [event, uid, id, locale ?? '-'].join(' ');
    const ours = new Set(
      (await at.log.take()).map(({ event, data }) =>
        key(event, data.content_type, data.entry.documentId, data.locale)
      )
    );
    const theirs = new Set(
      hostPosts.map(({ event, uid, entry }) =>
        key(COUNTERPARTS[event]!, uid, entry.documentId, uid === WRITER ? null : entry.locale!)
      )
    );
    expect(theirs.size).toBeGreaterThan(15);
    expect([...theirs].filter((one) => !ours.has(one))).toEqual([]);
    await at.site.request('DELETE', `/admin/webhooks/${made.body.data.id}`, { as: 'admin' });
  }, 120_000);
});
