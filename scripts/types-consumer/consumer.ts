// A plugin of somebody else that uses all types that the package exports.
import type { Core } from '@strapi/strapi';
import type {
  Campaign,
  Company,
  Contact,
  ContactImport,
  Deal,
  DealStage,
  DeliveredValue,
  Delivery,
  EmailService,
  EntryEventData,
  EventDeclaration,
  EventMap,
  EventsService,
  EventToSend,
  HookTypes,
  ImportReport,
  MediaEventData,
  PayloadFilterValue,
  Recorded,
  RequestFilterValue,
  SwitchboardEvents,
  SwitchboardServices,
  Tag,
  Task,
  Webhook,
} from 'strapi-plugin-switchboard/strapi-server';
import type {
  Accepted,
  OfflineTill,
  Sale,
  Settlement,
  Till,
} from 'strapi-plugin-switchboard/till-client';
import { createTill } from 'strapi-plugin-switchboard/till-client';
import type server from 'strapi-plugin-switchboard/strapi-server';
import type admin from 'strapi-plugin-switchboard/strapi-admin';

/** True for `any`, which everything that cannot be resolved becomes. */
type IsAny<T> = 0 extends 1 & T ? true : false;
type NoneIsAny<T extends readonly unknown[]> = { [K in keyof T]: IsAny<T[K]> }[number];

export const resolved: NoneIsAny<
  [
    Campaign,
    Company,
    Contact,
    ContactImport,
    Deal,
    DealStage,
    DeliveredValue,
    Delivery,
    EmailService,
    EntryEventData,
    EventDeclaration,
    EventMap,
    EventsService,
    EventToSend,
    HookTypes,
    ImportReport,
    MediaEventData,
    PayloadFilterValue,
    Recorded,
    RequestFilterValue,
    SwitchboardEvents,
    SwitchboardServices,
    Tag,
    Task,
    Webhook,
    Accepted,
    OfflineTill,
    Sale,
    Settlement,
    Till,
    typeof server,
    typeof admin,
    Parameters<(typeof server)['register']>[0]['strapi'],
    Parameters<(typeof admin)['register']>[0],
  ]
> = false;

const services = <Uid extends keyof SwitchboardServices>(strapi: Core.Strapi, uid: Uid) =>
  strapi.service(uid) as unknown as SwitchboardServices[Uid];

export const use = async (strapi: Core.Strapi): Promise<string> => {
  const sent: number = await services(strapi, 'plugin::switchboard.events').send('a.b', { c: 1 });
  const seen: Recorded = await services(strapi, 'plugin::switchboard.email').complained({
    campaign: null,
    contact: 'c',
  });
  strapi.hook('service_crm_webhook_events').register((events: EventMap): EventMap => ({
    ...events,
    'a.b': { label: 'B', group: 'A' },
  }));
  strapi
    .hook('service_crm_webhook_payload')
    .register((value: PayloadFilterValue): HookTypes['service_crm_webhook_payload']['out'] =>
      value.webhook.active ? value : null
    );
  return `${sent} ${seen.counted}`;
};

// @ts-expect-error an event's name is text
export const wrong: EventToSend = { event: 1, data: {} };
// @ts-expect-error a webhook given to a handler never carries its secret
export const leak = (webhook: Webhook): unknown => webhook.secret;

export const sell = (sale: Sale): Promise<Accepted> =>
  createTill({ url: 'https://shop.example', key: 'k', secret: 's' }).sale(sale);
