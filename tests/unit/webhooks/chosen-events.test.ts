import { chosenEvents } from '../../../server/src/webhooks/webhook';

describe('the events that a webhook chose', () => {
  it('are the names of its list', () => {
    expect(chosenEvents('["contact.created","*"]')).toEqual(['contact.created', '*']);
  });

  it.each(['', 'contact.created', '["contact.created"', '{"a":1}', '"*"', 'null', '1', null])(
    'are none where %j was written',
    (text) => {
      expect(chosenEvents(text)).toEqual([]);
    }
  );

  it('are the names alone where something else is in the list', () => {
    expect(chosenEvents('[1, null, "deal.won", ["*"]]')).toEqual(['deal.won']);
  });
});
