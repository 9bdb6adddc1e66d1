import { isbot } from 'isbot';

/**
 * Tells people from machines that open or click (sources: docs/email.md). Security products fetch images and links
 * before the reader, privacy proxies fetch images. Counting a machine is worse than missing a person.
 */

export interface Sighting {
  kind: 'open' | 'click';
  userAgent?: string | null;
  ip?: string | null;
  /** HTTP method, if known: a person's mail program does not send HEAD. */
  method?: string | null;
  at: number;
  sentAt?: number | null;
}

export type MachineReason = 'no_user_agent' | 'prefetch' | 'scanner' | 'bot' | 'head' | 'too_fast';

/** Proxies that fetch images when a person opens the mail; a bot list refuses them for their names. */
const PEOPLE_PROXIES = /\b(GoogleImageProxy|YahooMailProxy|DuckDuckGo-ImageProxy)\b/i;

/** Mail programs that a bot list does not know. */
const MAIL_PROGRAMS = /^Superhuman\/|\bProtonMail\b|^Outlook-(iOS|Android)\//i;

/** Prefetchers: Apple Mail Privacy Protection sends only `Mozilla/5.0`; Gmail a 2015 browser and a second one. */
const PREFETCH = /^Mozilla\/5\.0$|Edge\/12\.246 Mozilla\/5\.0$/;

/** Security gateways that name themselves. */
const SCANNERS =
  /barracuda|mimecast|proofpoint|urldefense|symantec|messagelabs|fireeye|trellix|trend ?micro|zscaler|forcepoint|websense|sophos|cisco (?:secure|ironport)|ironport|safelinks|bitdefender|kaspersky|checkpoint|avanan|cloudmark|vade|fortinet|fortimail|paloalto|wildfire|area1|abnormalsecurity|mailscanner|spamtitan|hornetsecurity/i;

/** Faster than a mail can arrive, be noticed and be read. */
const FASTEST_MS = { open: 1000, click: 3000 } as const;

/** @returns why this was no person; null if it may have been one. */
export const machineReason = (sighting: Sighting): MachineReason | null => {
  const { kind, at, sentAt } = sighting;
  const userAgent = sighting.userAgent?.trim() ?? '';
  if (sighting.method?.toUpperCase() === 'HEAD') return 'head';
  if (userAgent === '') return 'no_user_agent';
  if (PREFETCH.test(userAgent)) return 'prefetch';
  if (SCANNERS.test(userAgent)) return 'scanner';
  const isKnown = PEOPLE_PROXIES.test(userAgent) || MAIL_PROGRAMS.test(userAgent);
  if (!isKnown && isbot(userAgent)) return 'bot';
  if (typeof sentAt === 'number' && at - sentAt < FASTEST_MS[kind]) return 'too_fast';
  return null;
};
