import type { App } from '../../../server/src/app';
import { parseOptions } from '../../../server/src/config/schema';
import { contentTypes } from '../../../server/src/crm/content-types';
import { getInspected } from '../../../server/src/crm/mapping/sources';
import lead from '../../site/src/api/lead/content-types/lead/schema.json';

const LEAD = 'api::lead.lead';

/** A site with these mappings, whose own type is that of the tests' site. */
const siteWith = (sources: object): App => {
  const own = Object.entries(contentTypes).map(([name, { schema }]) => [
    `plugin::switchboard.${name}`,
    schema,
  ]);
  const types = { ...Object.fromEntries(own), [LEAD]: lead };
  const app = {
    strapi: { contentTypes: types, plugin: () => undefined },
    options: parseOptions({ sources }),
    part: <T>(make: (app: App) => T): T => make(app as unknown as App),
  };
  return app as unknown as App;
};

describe('a mapping that the schema does not bear out', () => {
  it.each<[string, object, RegExp]>([
    [
      'an unknown content type',
      { contentType: 'api::leed.leed' },
      /^switchboard\.sources\.contact\.contentType: there is no content type "api::leed\.leed"\. Possible: .*api::lead\.lead/,
    ],
    [
      'an unknown attribute',
      { contentType: LEAD, fields: { email: 'email' } },
      /^switchboard\.sources\.contact\.fields\.email: api::lead\.lead has no attribute "email" to read\. Possible: .*mail/,
    ],
    [
      'an unknown key of the payload',
      { contentType: LEAD, fields: { mail: 'mail' } },
      /a contact has no field "mail"\. Possible: .*email/,
    ],
    [
      'tags that are no relation',
      { contentType: LEAD, fields: { email: 'mail', tags: 'headline' } },
      /fields\.tags: must name a relation of api::lead\.lead to many tags\. Possible: labels\./,
    ],
    [
      'tags that are no tags',
      { contentType: LEAD, fields: { email: 'mail', tags: 'labels' } },
      /sources\.tag = \{ contentType: 'api::label\.label' \}/,
    ],
  ])('is refused: %s', (_name, contact, message) => {
    expect(() => getInspected(siteWith({ contact }), 'contact')).toThrow(message);
  });
});
