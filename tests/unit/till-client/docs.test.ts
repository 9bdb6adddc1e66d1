import { ERROR_STATUS, EVENT_FLAGS } from '../../../server/src/pos/rules/records';
import { CONNECTION_SCOPES, POS_EVENT_STATES } from '../../../shared/contracts/pos';
import { readDocument } from '../docs/support/markdown';

/** The tables of docs/tills.md; `tests/samples` runs its code. */

const document = readDocument('docs/tills.md');

describe('docs/tills.md', () => {
  it.each(Object.entries(ERROR_STATUS))('says what to do about %s', (code, status) => {
    const rows = document.split('\n').filter((line) => line.startsWith(`| ${status} `));
    expect(rows.join()).toContain(`\`${code}\``);
  });

  it.each([...POS_EVENT_STATES, ...EVENT_FLAGS, ...CONNECTION_SCOPES])('explains %s', (word) => {
    expect(document).toContain(`\`${word}\``);
  });
});
