// The management routes beyond what their zod schemas say. A route that has `request` and
// `response` needs nothing here but, where it has one, another status than 200 (204 where it
// answers nothing), a refusal of its own, or a `media` type of text instead of JSON. Words for
// routes that a site has not are no fault.

/** Modules whose exported zod objects become components, named after their exports. */
export const NAMED_SCHEMAS = [
  './server/src/webhooks/managing/inputs.js',
  './server/src/webhooks/managing/outputs.js',
];

/** By handler. */
export const managementOperations = {
  'webhooks.find': { summary: 'List webhooks' },
  'webhooks.create': { summary: 'Make a webhook; its secret is in the answer', status: 201 },
  'webhooks.findOne': { summary: 'One webhook' },
  'webhooks.update': { summary: 'Change a webhook' },
  'webhooks.delete': { summary: 'Remove a webhook' },
  'webhooks.test': { summary: 'Send a test', refusals: [503] },
  'webhooks.revealSecret': { summary: 'Show a secret' },
  'webhooks.rotateSecret': { summary: 'Replace a secret' },
  'webhooks.previewFilter': { summary: 'Preview a filter' },
  'webhook-events.find': { summary: 'Events that can be chosen' },
  'deliveries.find': { summary: 'Find deliveries' },
  'deliveries.findOne': { summary: 'One delivery with its attempts' },
  'delivery-causes.find': { summary: 'Failing and failed deliveries by cause' },
  'deliveries.retry': { summary: 'Send a delivery again now', refusals: [409, 503] },
  'deliveries.skip': { summary: 'Give a delivery up', refusals: [409] },
  'deliveries.release': { summary: 'Let later deliveries go before this one', refusals: [409] },
  'recoveries.preview': { summary: 'Preview a recovery' },
  'recoveries.create': {
    summary: 'Send failed deliveries again',
    status: 201,
    refusals: [409],
  },
  'recoveries.find': { summary: 'List recoveries' },
  'recoveries.findOne': { summary: 'How far a recovery is' },
  'recoveries.pause': { summary: 'Pause a recovery', refusals: [409] },
  'recoveries.resume': { summary: 'Resume a recovery', refusals: [409] },
  'recoveries.cancel': { summary: 'Cancel a recovery', refusals: [409] },
  'webhooks.replay': {
    summary: 'Send a webhook events of the journal; 200 counts them for a dry run',
    status: [200, 201],
    refusals: [409],
  },
  'journal.find': { summary: 'Read the journal of events', refusals: [409] },
  'metrics.find': { summary: 'Figures for Prometheus', media: 'text/plain' },
  'contact-purchases.find': { summary: 'Purchases and returns of a contact' },
  'contacts.addTag': { summary: 'Give a contact a tag' },
  'contacts.removeTag': { summary: 'Take a tag from a contact' },
};

const PROVIDERS = { sendgrid: 'SendGrid', mailgun: 'Mailgun' };

/** Routes that others call in formats of their own, by handler. */
export const foreignOperations = Object.fromEntries(
  Object.entries(PROVIDERS).map(([name, label]) => [
    `email-webhooks.${name}`,
    { summary: `Events of ${label}, in its own format and signed its own way` },
  ])
);

const CRM_WORDS = {
  contacts: ['contact', 'contacts'],
  tags: ['tag', 'tags'],
  companies: ['company', 'companies'],
  deals: ['deal', 'deals'],
  'deal-stages': ['stage of deals', 'stages of deals'],
  tasks: ['task', 'tasks'],
  campaigns: ['campaign', 'campaigns'],
};

for (const [controller, [one, many]] of Object.entries(CRM_WORDS)) {
  Object.assign(managementOperations, {
    [`${controller}.find`]: { summary: `List ${many}` },
    [`${controller}.create`]: { summary: `Make a ${one}`, status: 201 },
    [`${controller}.findOne`]: { summary: `One ${one}` },
    [`${controller}.update`]: { summary: `Change a ${one}` },
    [`${controller}.delete`]: { summary: `Remove a ${one}` },
  });
}
