import { adminActionFor } from '../../../server/src/access/rules/content-api-actions';

const of = (action: string) => adminActionFor(`plugin::switchboard.${action}`);

describe('which admin action stands for an action of the content API', () => {
  it.each([
    ['webhooks.find', 'webhooks.read'],
    ['webhooks.findOne', 'webhooks.read'],
    ['webhooks.create', 'webhooks.create'],
    ['webhooks.update', 'webhooks.update'],
    ['webhooks.revealSecret', 'webhooks.reveal'],
    ['webhooks.rotateSecret', 'webhooks.update'],
    ['webhooks.test', 'webhooks.update'],
    ['webhooks.delete', 'webhooks.delete'],
    ['webhook-events.find', 'webhooks.read'],
    ['journal.find', 'journal.read'],
    ['metrics.find', 'metrics.read'],
    ['deliveries.find', 'webhooks.read'],
    ['deliveries.retry', 'webhooks.update'],
    ['contacts.find', 'crm.read'],
    ['deal-stages.findOne', 'crm.read'],
    ['contacts.import', 'crm.import'],
    ['contacts.addTag', 'crm.write'],
    ['companies.delete', 'crm.write'],
  ])('%s needs %s', (action, needed) => {
    expect(of(action)).toBe(needed);
  });

  it.each([
    ['webhooks.somethingNew'],
    ['webhooks.constructor'],
    ['deliveries.delete'],
    ['webhook-events.update'],
    ['journal.update'],
    ['metrics.constructor'],
    ['pos.sale'],
    ['application-passwords.find'],
    ['webhooks'],
    ['webhooks.'],
    ['.find'],
    ['webhooks.find.more'],
    ['toString.find'],
  ])('nobody reaches %s, which is not listed', (action) => {
    expect(of(action)).toBeNull();
  });

  it.each([
    ['plugin::users-permissions.user.find'],
    ['api::contacts.contacts.find'],
    ['plugin::switchboard-copy.webhooks.find'],
    ['admin::webhooks.find'],
    [''],
  ])('nothing outside this plugin is reached: %s', (action) => {
    expect(adminActionFor(action)).toBeNull();
  });
});
