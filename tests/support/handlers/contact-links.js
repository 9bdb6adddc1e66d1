'use strict';

// Types of a site's own that refer to contacts, one way and to records of any type, and parts of contacts.
const CONTACT = 'plugin::switchboard.contact';

const relation = (kind, more = {}) => ({ type: 'relation', relation: kind, ...more });

exports.register = ({ strapi }) => {
  strapi.get('components').set('shared.stop-by', {
    uid: 'shared.stop-by',
    category: 'shared',
    modelType: 'component',
    modelName: 'stop-by',
    globalId: 'ComponentSharedStopBy',
    collectionName: 'components_shared_stop_bys',
    info: { displayName: 'Stop by' },
    options: {},
    attributes: { by: relation('oneToOne', { target: CONTACT }) },
  });
  strapi.get('content-types').add('api::visit', {
    visit: {
      schema: {
        kind: 'collectionType',
        collectionName: 'visits',
        info: { singularName: 'visit', pluralName: 'visits', displayName: 'Visit' },
        options: { draftAndPublish: true },
        attributes: {
          name: { type: 'string' },
          host: relation('manyToOne', { target: CONTACT }),
          guests: relation('manyToMany', { target: CONTACT }),
          about: relation('morphToOne'),
          stops: { type: 'component', repeatable: true, component: 'shared.stop-by' },
        },
      },
    },
  });
  Object.assign(strapi.contentType(CONTACT).attributes, {
    photo: { type: 'media', multiple: false },
    gallery: { type: 'media', multiple: true },
    homes: { type: 'component', repeatable: true, component: 'shared.place' },
    referrer: relation('manyToOne', { target: CONTACT, inversedBy: 'referred' }),
    referred: relation('oneToMany', { target: CONTACT, mappedBy: 'referrer' }),
    lists: relation('manyToMany', { target: 'api::label.label' }),
    vip: { type: 'boolean' },
  });
};
