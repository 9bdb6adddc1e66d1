// The head of the site's first page. docs/index.md stays a plain list of pages for other readers.

const feature = (title, details, link, linkText) => ({ title, details, link, linkText });

/**
 * @param {string} logo address of the picture
 * @returns the front matter of the first page
 */
export const home = (logo) => ({
  layout: 'home',
  hero: {
    name: 'Switchboard',
    text: 'Webhooks out, tills in',
    tagline:
      'A plugin for Strapi 5. It sends CRM events as signed webhooks and takes sales from tills through a signed API, on the database your site already has.',
    image: { src: logo, alt: 'Switchboard' },
    actions: [
      { theme: 'brand', text: 'Install', link: '/install' },
      { theme: 'alt', text: 'Receive webhooks', link: '/receivers' },
      { theme: 'alt', text: 'Connect a till', link: '/tills' },
    ],
  },
  features: [
    feature(
      'No event is lost',
      'Events are saved in the transaction of the change, sent in the background and retried for about a day. Each attempt is in the log.',
      '/reliability',
      'Reliability'
    ),
    feature(
      'Signed requests',
      'Receivers verify each request with HMAC or a Standard Webhooks library. Samples in Node, Python, PHP, C#, Go and more.',
      '/receivers',
      'Receiving webhooks'
    ),
    feature(
      'Each record counts once',
      'Sales, refunds, counts and closings. A record counts once, and stock is right in whatever order records arrive.',
      '/tills',
      'Connect a till'
    ),
    feature(
      'A CRM in your panel',
      'Contacts, companies, deals, tasks and campaigns, or your own content types in their place.',
      '/crm',
      'The CRM'
    ),
    feature(
      'Any content type',
      'Articles, products and files send events too, with the same signing, retries and log.',
      '/any-content-type',
      'Any content type'
    ),
    feature(
      'Built for operations',
      'Checks, alerts, metrics and traces. Add workers and Redis if one process is not enough.',
      '/operations',
      'Operations'
    ),
  ],
});
