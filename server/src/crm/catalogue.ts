import { contactEvents, formEvents } from './catalogue/contact-events';
import type { EventDefinitions } from './catalogue/define';
import { conversationEvents, marketingEvents } from './catalogue/email-events';
import { companyEvents, dealEvents, taskEvents } from './catalogue/work-events';

/** Every event of the CRM, in the order of the contract's table (docs/contract-webhooks.md#events); `ping` is not the CRM's. */
export const CRM_EVENTS: EventDefinitions = {
  ...contactEvents,
  ...formEvents,
  ...taskEvents,
  ...companyEvents,
  ...dealEvents,
  ...marketingEvents,
  ...conversationEvents,
};

export type { EventDefinition, EventDefinitions } from './catalogue/define';
