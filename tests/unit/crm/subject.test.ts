import { subjectOf } from '../../../server/src/crm/rules';

const CONTACT = { id: 'c1', name: 'Ada Lovelace', email: 'ada@example.test' };
const ADA = { type: 'contact', id: 'c1', label: 'Ada Lovelace' };

describe('the record that an event is about', () => {
  it.each([
    ['contact.created', CONTACT],
    ['contact.updated', { contact: CONTACT, changed: ['email'] }],
    ['contact.tagged', { contact: CONTACT, tag: { id: 't1', name: 'VIP' }, source: 'api' }],
    ['form.submitted', { contact: CONTACT, form_title: 'Enquiry', entry_id: 'e1' }],
    ['email.opened', { campaign_id: 'k1', contact: CONTACT }],
    ['email.received', { contact: CONTACT, subject: 'Re: hello', deal_id: 'd1' }],
  ])('of %s is its contact', (event, data) => {
    expect(subjectOf({ event, data })).toEqual(ADA);
  });

  it.each([
    ['deal.stage_changed', { deal: { id: 'd1', title: 'One' } }, 'deal', 'One'],
    ['deal.deleted', { id: 'd1', title: 'One' }, 'deal', 'One'],
    ['company.updated', { id: 'd1', name: 'Acme' }, 'company', 'Acme'],
    ['task.completed', { id: 'd1', title: 'Call', outcome: null }, 'task', 'Call'],
    ['campaign.sent', { id: 'd1', title: 'May', subject: 'Hello' }, 'campaign', 'May'],
    ['contact.deleted', { id: 'd1', email: 'a@example.test' }, 'contact', 'a@example.test'],
    ['contact.created', { id: 'd1', name: ' ', email: null }, 'contact', 'd1'],
  ])('of %s has a label that a person knows', (event, data, type, label) => {
    expect(subjectOf({ event, data })).toEqual({ type, id: 'd1', label });
  });

  it.each([
    ['loyalty.earned', CONTACT],
    ['stock.level_changed', { id: 's1' }],
    ['contact.created', null],
    ['contact.created', {}],
    ['contact.created', { contact: 'c1' }],
  ])('of %s with %j is none', (event, data) => {
    expect(subjectOf({ event, data })).toBeNull();
  });

  it('has a label of one line that every database takes', () => {
    const label = (name: unknown) =>
      subjectOf({ event: 'deal.won', data: { id: 'd', name } })?.label;
    expect(label('a\u0000b\r\nc\u2028')).toBe('a b c');
    expect(label('\ud800x')).toBe('\ufffdx');
    expect(label('x'.repeat(500))).toHaveLength(200);
    expect([...label('\u{1F600}'.repeat(500))!]).toHaveLength(200);
    expect(label(7)).toBe('7');
    expect(label({ of: 'a site' })).toBe('d');
  });
});
