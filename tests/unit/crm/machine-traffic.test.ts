import { machineReason } from '../../../server/src/crm/rules/machine-traffic';

const SENT = Date.UTC(2030, 0, 1);
const later = (ms: number) => ({ at: SENT + ms, sentAt: SENT });
const HOUR = 3_600_000;

describe('what counts as a person', () => {
  it.each([
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36',
    'Mozilla/5.0 (X11; Linux x86_64; rv:68.0) Gecko/20100101 Thunderbird/68.2.1',
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)',
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148',
    'Mozilla/5.0 (Windows NT 10.0; WOW64; Trident/7.0; rv:11.0; Microsoft Outlook 16.0) like Gecko',
    'Microsoft Office/16.0 (Windows NT 10.0; Microsoft Outlook 16.0.12026; Pro)',
    'Mozilla/4.0 (compatible; ms-office; MSOffice 16)',
    'Outlook-iOS/709.2226530.prod.iphone (3.24.1)',
    'Superhuman/1.0',
    // Proxies that fetch an image when the mail is opened.
    'Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)',
    'YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html',
    'DuckDuckGo-ImageProxy',
  ])('%s', (userAgent) => {
    expect(machineReason({ kind: 'open', userAgent, ...later(HOUR) })).toBeNull();
    expect(machineReason({ kind: 'click', userAgent, ...later(HOUR) })).toBeNull();
  });
});

describe('what does not', () => {
  it.each([
    ['no_user_agent', ''],
    ['no_user_agent', '   '],
    ['no_user_agent', null],
    // Apple Mail Privacy Protection, and Gmail's prefetch for an open session.
    ['prefetch', 'Mozilla/5.0'],
    [
      'prefetch',
      'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/42.0.2311.135 Safari/537.36 Edge/12.246 Mozilla/5.0',
    ],
    ['scanner', 'Barracuda Sentinel (EE)'],
    ['scanner', 'Mimecast'],
    ['scanner', 'Mozilla/5.0 (compatible; proofpoint)'],
    ['scanner', 'Mozilla/5.0 (Windows NT 6.1) zscaler'],
    ['scanner', 'BitDefender'],
    [
      'scanner',
      'Mozilla/5.0 (X11; U; Linux i686) AppleWebKit/534.3 (KHTML, like Gecko) Chrome/6.0 Safari/534.3 Symantec',
    ],
    ['bot', 'curl/8.1'],
    ['bot', 'python-requests/2.28'],
    ['bot', 'Java/1.8.0'],
    ['bot', 'Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)'],
    ['bot', 'facebookexternalhit/1.1'],
    [
      'bot',
      'Mozilla/5.0 (compatible; MSIE 9.0; Windows NT 6.1; Trident/5.0) SkypeUriPreview Preview/0.5',
    ],
    [
      'bot',
      'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/110.0.5481.177 Safari/537.36',
    ],
  ])('%s: %s', (reason, userAgent) => {
    expect(machineReason({ kind: 'open', userAgent, ...later(HOUR) })).toBe(reason);
  });

  const userAgent = 'Mozilla/5.0 (X11; Linux x86_64; rv:68.0) Gecko/20100101 Thunderbird/68.2.1';

  it('faster than a person', () => {
    expect(machineReason({ kind: 'click', userAgent, ...later(2999) })).toBe('too_fast');
    expect(machineReason({ kind: 'click', userAgent, ...later(3000) })).toBeNull();
    expect(machineReason({ kind: 'open', userAgent, ...later(999) })).toBe('too_fast');
    expect(machineReason({ kind: 'open', userAgent, ...later(1000) })).toBeNull();
    expect(machineReason({ kind: 'open', userAgent, at: SENT })).toBeNull();
  });

  it('a HEAD request', () => {
    expect(machineReason({ kind: 'click', userAgent, method: 'head', ...later(HOUR) })).toBe(
      'head'
    );
  });
});
