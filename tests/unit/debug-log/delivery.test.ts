import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  announceDeliveries,
  DELIVERIES,
  getDeliveryStore,
} from '../../../server/src/webhooks/deliveries/store';
import { createDeliveryHandler } from '../../../server/src/webhooks/sending/deliver';
import type { HeldBack } from '../../../server/src/webhooks/modules-off';
import { getPublisher } from '../../../server/src/webhooks/publish';
import { generateSecret } from '../../../server/src/webhooks/rules/request-headers';
import { Sender } from '../../../server/src/webhooks/sending/send';
import { type SmallSite, startSmallSite } from '../../support/small-site';

const CANARY = 'canary-4711';
const secret = generateSecret();

let site: SmallSite;
let receiver: http.Server;
let sender: Sender;
let answer = 200;
/** Until then what is published stays queued. */
let serve: (() => void) | null;
const wake = () => {
  serve?.();
  serve = null;
  announceDeliveries(site.app, null);
};

const open = async (options: object, level?: 'debug' | 'http') => {
  site = await startSmallSite(
    { webhooks: { allowPrivateNetworks: true, threads: 0, ...options } },
    level
  );
  const { app, connection } = site;
  sender = new Sender(app);
  const store = getDeliveryStore(app);
  const heldBack = { dueTimes: () => store.dueTimes() } as unknown as HeldBack;
  serve = () => app.scheduler.serve(DELIVERIES, createDeliveryHandler(app, sender, heldBack));
  const { port } = receiver.address() as AddressInfo;
  await connection('switchboard_webhooks').insert({
    id: 3,
    document_id: 'w3',
    name: `${CANARY} name`,
    url: `http://127.0.0.1:${port}/${CANARY}`,
    events: '["*"]',
    active: true,
    secret,
    consecutive_failures: 0,
    created_at: 0,
    updated_at: 0,
  });
};

const publish = () =>
  getPublisher(site.app).publish([
    { event: 'contact.created', data: { email: `${CANARY}@example.test` } },
  ]);

/** Sends what is due, and answers with the lines since the last call, times left out. */
const linesOfSending = async (expected: RegExp): Promise<string[]> => {
  wake();
  for (let waited = 0; !site.lines.some((line) => expected.test(line)); waited += 5) {
    if (waited > 5000) throw new Error(site.lines.join('\n'));
    await sleep(5);
  }
  return site.lines.splice(0).map((line) =>
    line
      .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/, 'ID')
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+\+00:00/, 'TIME')
      .replace(/\d+ ms/, 'N ms')
  );
};

beforeAll(async () => {
  receiver = http.createServer((request, response) => {
    request.resume();
    response.statusCode = answer;
    response.end(CANARY);
  });
  await new Promise<void>((listening) => receiver.listen(0, '127.0.0.1', listening));
});
afterEach(async () => {
  await site.app.scheduler.stop();
  sender.close();
  await site.close();
  answer = 200;
});
afterAll(() => new Promise((closed) => receiver.close(closed)));

it('a delivery that succeeds has a line for each step', async () => {
  await open({});
  await publish();
  expect(await linesOfSending(/recorded/)).toEqual([
    'switchboard: delivery ID queued: contact.created for webhook 3',
    'switchboard: delivery ID claimed for attempt 1, lease until TIME',
    'switchboard: delivery ID: attempt started, to webhook 3',
    'switchboard: delivery ID: attempt ended after N ms: delivered, status 200',
    'switchboard: delivery ID recorded: sent after 1 attempt',
  ]);
});

it('one that fails says why, when it is due again, and that its webhook is switched off', async () => {
  await open({ retryScheduleSeconds: [60], disableAfterFailures: 1 });
  answer = 500;
  await publish();
  expect((await linesOfSending(/recorded/)).slice(3)).toEqual([
    'switchboard: delivery ID: attempt ended after N ms: http_500, status 500',
    'switchboard: delivery ID recorded: pending after 1 attempt, due again at TIME',
    // Not of this level: who reads the warning knows the webhook by the name that he gave it.
    `switchboard: webhook 3 (${CANARY} name): Attempts have failed since TIME: http_500.`,
  ]);
  await site.connection('switchboard_deliveries').update({ next_attempt_at: 1 });
  await site.connection('switchboard_delivery_queue').update({ due_at: 1 });
  expect(await linesOfSending(/switched off/)).toEqual([
    'switchboard: delivery ID claimed for attempt 2, lease until TIME',
    'switchboard: delivery ID: attempt started, to webhook 3',
    'switchboard: delivery ID: attempt ended after N ms: http_500, status 500',
    'switchboard: delivery ID recorded: failed after 2 attempts',
    'switchboard: webhook 3 switched off: its deliveries stay queued',
    `switchboard: webhook 3 (${CANARY} name): Switched off after 1 failed deliveries in a row.`,
  ]);
});

it('no line of this level has the body, the address, the secret or the answer', async () => {
  await open({});
  await publish();
  const said = (await linesOfSending(/recorded/)).join('\n');
  expect(said).toContain('attempt started');
  for (const hidden of [CANARY, secret, '127.0.0.1']) expect(said).not.toContain(hidden);
});

it('what is rolled back was never queued', async () => {
  await open({});
  const { strapi } = site;
  const rolledBack = strapi.db.transaction(async () => {
    await publish();
    throw new Error('the write fails');
  });
  await expect(rolledBack).rejects.toThrow('the write fails');
  expect(site.lines).toEqual([]);
});

it('at the level http nothing is said, and it is sent all the same', async () => {
  await open({}, 'http');
  await publish();
  wake();
  const isSent = () => site.connection('switchboard_deliveries').where({ status: 'sent' }).first();
  for (let waited = 0; !(await isSent()); waited += 5) {
    if (waited > 5000) throw new Error('not sent');
    await sleep(5);
  }
  expect(site.lines).toEqual([]);
});
