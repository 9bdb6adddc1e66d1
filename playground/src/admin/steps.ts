/** A page of the panel (`to`), or of one of the playground's other programs (`page`). */
export type StepLink = { text: string } & ({ to: string } | { page: 'receiver' | 'till' });

/** What to do and what will be seen is `playground.tour.<id>.do` and `….see` in the translations. */
export interface Step {
  id: string;
  links: StepLink[];
}

const PLUGIN = '/plugins/switchboard';
const CONTENT = '/content-manager/collection-types/plugin::switchboard';
const receiver: StepLink = { text: 'receiver', page: 'receiver' };

export const STEPS: readonly Step[] = [
  {
    id: 'recover',
    links: [{ text: 'givenUp', to: `${PLUGIN}/deliveries?state=failed` }, receiver],
  },
  { id: 'contact', links: [{ text: 'newContact', to: `${CONTENT}.contact/create` }, receiver] },
  { id: 'deal', links: [{ text: 'deals', to: `${CONTENT}.deal` }, receiver] },
  {
    id: 'outage',
    links: [receiver, { text: 'failing', to: `${PLUGIN}/deliveries?state=failing` }],
  },
  { id: 'days', links: [{ text: 'days', to: `${PLUGIN}/sales` }] },
  {
    id: 'till',
    links: [
      { text: 'till', page: 'till' },
      { text: 'records', to: `${PLUGIN}/records` },
      { text: 'stock', to: `${PLUGIN}/stock` },
    ],
  },
  { id: 'mapping', links: [{ text: 'mapping', to: `${PLUGIN}/unmapped` }] },
  {
    id: 'held',
    links: [
      { text: 'held', to: `${PLUGIN}/records?state=held` },
      { text: 'differs', to: `${PLUGIN}/records?state=differs` },
    ],
  },
  { id: 'language', links: [{ text: 'profile', to: '/me' }] },
];
