import { anyDatabase, describeEach } from '../support/databases';
import { type EntrySite, useEntrySite } from './entries-support';

const MEDIA_EVENTS = ['media.created', 'media.updated', 'media.deleted'];

describeEach(anyDatabase(), 'files of the media library as events', (database) => {
  let at: EntrySite;
  useEntrySite(database, [], (site) => (at = site), { media: true }, MEDIA_EVENTS);

  const upload = async (path: string, text: string, name = 'note.txt') => {
    const form = new FormData();
    form.append('files', new Blob([text], { type: 'text/plain' }), name);
    const answer = await fetch(`${at.site.url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${at.site.adminToken}` },
      body: form,
    });
    expect([200, 201]).toContain(answer.status);
    const body = await answer.json();
    return (Array.isArray(body) ? body[0] : body) as { id: number; documentId: string };
  };
  const info = async (id: number, fileInfo: object) => {
    const form = new FormData();
    form.append('fileInfo', JSON.stringify(fileInfo));
    const answer = await fetch(`${at.site.url}/upload?id=${id}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${at.site.adminToken}` },
      body: form,
    });
    expect(answer.status).toBe(200);
  };

  it('tells of adding, describing, replacing and deleting one', async () => {
    const { id, documentId } = await upload('/upload', 'Hello');
    const [created, ...others] = await at.log.take();
    expect(others).toEqual([]);
    expect(created).toMatchObject({
      event: 'media.created',
      data: { media: { id, documentId, name: 'note.txt', mime: 'text/plain', ext: '.txt' } },
    });
    for (const name of ['folder', 'folderPath', 'related', 'createdBy'])
      expect(created!.data.media).not.toHaveProperty(name);

    await info(id, { alternativeText: 'A note' });
    await info(id, { alternativeText: 'A note' });
    const updates = await at.log.take();
    expect(updates.map(({ event, data }) => [event, data.changed])).toEqual([
      ['media.updated', ['alternativeText']],
    ]);

    const replace = async (text: string) => {
      const form = new FormData();
      form.append('files', new Blob([text], { type: 'text/plain' }), 'note.txt');
      form.append('fileInfo', JSON.stringify({ name: 'note.txt', alternativeText: 'A note' }));
      const answer = await fetch(`${at.site.url}/upload?id=${id}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${at.site.adminToken}` },
        body: form,
      });
      expect(answer.status).toBe(200);
      return (await at.log.take()).map(({ event, data }) => [event, data.changed]);
    };
    expect(await replace('A longer text, '.repeat(20))).toEqual([
      ['media.updated', expect.arrayContaining(['size'])],
    ]);
    // As long as the one before, so that its record says the same.
    expect(await replace('Another texts, '.repeat(20))).toEqual([['media.updated', []]]);

    await at.site.request('DELETE', `/upload/files/${id}`, { as: 'admin' });
    expect(await at.log.take()).toMatchObject([
      { event: 'media.deleted', data: { media: { id, documentId, alternativeText: 'A note' } } },
    ]);
  });

  it('does not offer events of entries, of which the options name none', async () => {
    const { body } = await at.site.request('GET', '/api/fw-crm/v1/webhooks/events');
    const names = body.data.map(({ event }: { event: string }) => event);
    expect(names).toEqual(expect.arrayContaining(MEDIA_EVENTS));
    expect(names.filter((name: string) => name.startsWith('entry.'))).toEqual([]);
  });
});
