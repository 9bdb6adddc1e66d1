import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { ROOT } from './support/markdown';

/**
 * The site's search puts the page named for a question first. The questions go to the index that the
 * site builds: scripts/search-docs.mjs reads docs/.vitepress/config.mjs.
 */

const QUESTIONS: Record<string, string> = {
  'retry schedule': 'limits#retry-schedule',
  'rotate secret': 'keys#rotate-a-secret',
  'How do I rotate a leaked secret?': 'keys#rotate-a-secret',
  'offline till': 'tills#offline-tills-and-batches',
  'silent tills': 'shop#silent-tills',
  'verify signature': 'receivers#verify-the-signature',
  'resend failed deliveries': 'resending#resending-deliveries',
  'encryption key': 'keys#changing-the-encryption-key',
  'private address': 'private-addresses#private-addresses',
  'behind a proxy': 'proxy#behind-a-proxy',
  'import contacts': 'contacts#import-contacts',
  'prometheus metrics': 'monitoring#metrics',
  'redis workers': 'several-nodes#several-nodes-workers-and-redis',
  'custom headers': 'contract-webhooks#custom-headers',
  'stock is wrong': 'troubleshooting#stock-is-wrong',
  upgrade: 'upgrading#upgrading',
  uninstalling: 'uninstall#switching-off-and-uninstalling',
  retryScheduleSeconds: 'limits#retry-schedule',
};

it('puts the page named for the question first', () => {
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    [path.join(ROOT, 'scripts/search-docs.mjs'), '--json', ...Object.keys(QUESTIONS)],
    { encoding: 'utf8' }
  );
  expect([status, stderr]).toEqual([0, '']);
  const best = (JSON.parse(stdout) as string[][]).map(([first]) => first);
  expect(Object.keys(QUESTIONS).map((question, nth) => [question, best[nth]])).toEqual(
    Object.entries(QUESTIONS)
  );
}, 60_000);
