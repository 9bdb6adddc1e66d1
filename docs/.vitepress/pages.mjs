// What the menu of the site has. A test compares it with the pages that there are.

const page = (text, file) => ({ text, link: `/${file}` });

export const sidebar = [
  {
    text: 'Begin',
    items: [
      page('Installing', 'install'),
      page('Options', 'options'),
      page('Commands', 'commands'),
      page('Testing locally', 'local-testing'),
      page('Troubleshooting', 'troubleshooting'),
      page('Compared with others', 'comparison'),
    ],
  },
  {
    text: 'Events out',
    items: [
      page('Receiving webhooks', 'receivers'),
      page('Every event', 'events'),
      page('Automation tools', 'automation-tools'),
      page('The CRM', 'crm'),
      page('Any content type', 'any-content-type'),
      page('E-mail', 'email'),
      page('From Strapi’s built-in webhooks', 'from-strapi-webhooks'),
      page('From a WordPress CRM', 'from-wordpress'),
      page('For plugin developers', 'plugin-developers'),
      page('Management API', 'management-api'),
      page('The contract', 'contract-webhooks'),
    ],
  },
  {
    text: 'Tills in',
    items: [page('Connecting a till', 'tills'), page('The contract', 'contract-pos')],
  },
  {
    text: 'Keeping a site',
    items: [
      page('Operations', 'operations'),
      page('Monitoring', 'monitoring'),
      page('Scaling', 'scaling'),
      page('Reliability', 'reliability'),
      page('Performance', 'performance'),
      page('Docker and compose', 'docker'),
      page('Strapi Cloud', 'strapi-cloud'),
      page('Security model', 'security'),
      page('Privacy', 'privacy'),
      page('Switching off and uninstalling', 'uninstall'),
    ],
  },
  { text: 'Why it is so', items: [page('Decisions', 'decisions/README')] },
];
