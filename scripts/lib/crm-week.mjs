/**
 * A week of a small shop's CRM, as the writes it was made of. `make` has kind, name and record;
 * `change` has kind, name and what changed. `@name` stands for the id of what was made under that
 * name, `{ inDays }` for a time that is so far from now.
 */

const contact = (first, last, more) => {
  const name = first.toLowerCase();
  const record = { email: `${name}@example.test`, first_name: first, last_name: last, ...more };
  return ['contacts', name, record];
};

const NEWSLETTER = ['@newsletter'];
const WHOLESALE = ['@wholesale'];
const BOTH = ['@newsletter', '@wholesale'];

/** Contacts that customers of the week's sales match by address: Grace, Alan and Ada. */
const FIRST_DAY = [
  ['tags', 'newsletter', { name: 'Newsletter', slug: 'newsletter' }],
  ['tags', 'wholesale', { name: 'Wholesale', slug: 'wholesale' }],
  ['tags', 'vip', { name: 'Regular customer', slug: 'regular' }],
  ['companies', 'cafe', { name: 'Harbour Café', domain: 'harbour.example', industry: 'Catering' }],
  ['companies', 'hotel', { name: 'Hotel Lindenhof', industry: 'Hotels', employees: 40 }],
  ['deal-stages', 'inquiry', { name: 'Inquiry', position: 1, probability: 20 }],
  ['deal-stages', 'offer', { name: 'Offer sent', position: 2, probability: 50 }],
  ['deal-stages', 'order', { name: 'Order agreed', position: 3, probability: 90 }],
  contact('Grace', 'Hopper', { tags: NEWSLETTER, status: 'subscribed', company_id: '@cafe' }),
  contact('Alan', 'Turing', { tags: WHOLESALE, company_id: '@hotel', job_title: 'Purchasing' }),
  contact('Ada', 'Lovelace', { tags: BOTH, job_title: 'Buyer' }),
];

const deal = (title, value, more) => ({ title, value, currency: 'GBP', ...more });

const SECOND_DAY = [
  contact('Jonas', 'Weber', { tags: WHOLESALE, company_id: '@hotel' }),
  contact('Amélie', 'Martin', { email: 'amelie@example.test', tags: NEWSLETTER }),
  [
    'deals',
    'mugs',
    deal('Mugs for the breakfast room', 1800, {
      stage_id: '@inquiry',
      company_id: '@hotel',
      contact_id: '@alan',
      expected_close_date: { inDays: 20 },
    }),
  ],
  [
    'deals',
    'tea',
    deal('Tea for the terrace', 640, {
      stage_id: '@inquiry',
      company_id: '@cafe',
      contact_id: '@grace',
      expected_close_date: { inDays: 9 },
    }),
  ],
  [
    'tasks',
    'samples',
    {
      title: 'Bring samples to the hotel',
      type: 'meeting',
      due_at: { inDays: 2 },
      contact_id: '@alan',
      deal_id: '@mugs',
    },
  ],
  [
    'tasks',
    'call-grace',
    { title: 'Call about the tea', type: 'call', due_at: { inDays: 1 }, contact_id: '@grace' },
  ],
];

/**
 * The week, event by event: `daysAgo` and an `hour` of the clock on the wall, or `hoursAgo`. With
 * `isDown` the receiver answers 500; `sendsAgain`: its owner then sends again what failed; `givesUp`:
 * every try of the schedule failed.
 */
export const WEEK = [
  { daysAgo: 7, hour: 10, make: FIRST_DAY },
  { daysAgo: 6, hour: 11, make: SECOND_DAY },
  {
    daysAgo: 5,
    hour: 15,
    make: [
      [
        'campaigns',
        'spring',
        { title: 'Spring cards', subject: 'The spring cards are here', total: 3, sent: 3 },
      ],
      ['campaigns', 'blue', { title: 'Blue mugs are back', subject: 'Blue again' }],
    ],
    change: [
      ['campaigns', 'spring', { status: 'sent' }],
      ['contacts', 'amélie', { status: 'subscribed' }],
      ['deals', 'tea', { stage_id: '@offer' }],
    ],
  },
  {
    daysAgo: 3,
    hour: 14,
    isDown: true,
    make: [
      contact('Mei', 'Tanaka', { tags: NEWSLETTER }),
      contact('Omar', 'Haddad', { tags: WHOLESALE }),
    ],
    change: [
      ['deals', 'mugs', { stage_id: '@offer' }],
      ['tasks', 'call-grace', { status: 'done', outcome: 'Wants an offer by Friday' }],
    ],
  },
  { daysAgo: 3, hour: 16, sendsAgain: true },
  {
    daysAgo: 2,
    hour: 9,
    make: [
      [
        'deals',
        'shelves',
        deal('Display shelves', 420, { stage_id: '@inquiry', contact_id: '@omar' }),
      ],
      ['tasks', 'write-offer', { title: 'Write the offer for the café', deal_id: '@tea' }],
    ],
    change: [
      ['contacts', 'grace', { tags: ['@newsletter', '@vip'] }],
      ['deals', 'tea', { stage_id: '@order' }],
    ],
  },
  {
    hoursAgo: 23,
    isDown: true,
    givesUp: true,
    change: [
      ['deals', 'tea', { status: 'won' }],
      ['contacts', 'jonas', { job_title: 'Head of purchasing', phone: '+44 20 7946 0018' }],
    ],
  },
  {
    hoursAgo: 1,
    change: [
      ['deals', 'shelves', { status: 'lost', lost_reason: 'Too dear' }],
      ['contacts', 'mei', { status: 'unsubscribed' }],
    ],
  },
];
