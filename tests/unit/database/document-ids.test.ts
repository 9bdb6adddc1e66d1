import type { Core } from '@strapi/strapi';
import { giveDocumentId } from '../../../server/src/database/written-rows';

const HOST_FORM = /^[a-z][a-z0-9]{23}$/;

/** An id for a row of a type. @param made by what makes the ids of the type */
const given = (made: () => string) => {
  const get = () => ({ attributes: { documentId: { default: made } } });
  const strapi = { db: { metadata: { get } } } as unknown as Core.Strapi;
  const data: Record<string, unknown> = {};
  const ids = [1, 2].map(() => giveDocumentId(strapi, 'api::any.any', data));
  expect(data.documentId).toBe(ids[1]);
  return ids;
};

describe('the document id of a new row', () => {
  it('has the form of the host, whose own are made by a slow hash, once', () => {
    const made = jest.fn(() => 'p1qz0y0h0cbyinghl4siwpwe');
    const ids = given(made);
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) expect(id).toMatch(HOST_FORM);
    expect(made).toHaveBeenCalledTimes(1);
  });

  it('is made by the site where it makes ids of another form', () => {
    let last = 0;
    expect(given(() => `contact-${(last += 1)}`)).toEqual(['contact-2', 'contact-3']);
  });
});
