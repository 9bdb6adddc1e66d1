import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { curlOf, shellQuote, testSaleCommand } from '../../../admin/src/utils/curl';

test.each(["it's", '$(id)', '`id`', '"quoted"', 'a\nb', '\\'])(
  'a shell takes %j for one word and runs nothing of it',
  (text) => {
    const printed = execFileSync('sh', ['-c', `printf %s ${shellQuote(text)}`], {
      encoding: 'utf8',
    });
    expect(printed).toBe(text);
  }
);

test('a delivery as curl carries its headers and its exact body', () => {
  const command = curlOf({
    url: 'https://example.test/hook',
    headers: { 'x-service-event': 'ping', host: 'example.test', 'content-length': '2' },
    body: `{"a":"it's"}`,
  });
  expect(command).toContain("-H 'x-service-event: ping'");
  expect(command).not.toMatch(/content-length|host:/);
  expect(command).toContain(`--data-raw '{"a":"it'\\''s"}'`);
});

test('the shown test sale is valid JSON and signed as the contract says', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'sale-'));
  // A curl that prints its arguments, one a line with a mark, instead of sending them.
  const fake = path.join(folder, 'curl');
  fs.writeFileSync(fake, '#!/bin/sh\nfor word in "$@"; do printf "%s\\036" "$word"; done\n', {
    mode: 0o755,
  });
  const secret = "pos'secret";
  const command = testSaleCommand('https://shop.test/api/service-pos/v1', {
    key: 'pos_live_x',
    secret,
    sku: `CUP "9" 'x'`,
    locationRef: 'store-7',
  });
  const words = execFileSync('bash', ['-c', command], {
    encoding: 'utf8',
    env: { ...process.env, PATH: `${folder}:${process.env.PATH}` },
  }).split('\u001e');
  fs.rmSync(folder, { recursive: true });
  const header = (name: string) =>
    words.find((word) => word.startsWith(`${name}: `))?.slice(name.length + 2);
  const body = words[words.indexOf('--data-raw') + 1];
  expect(JSON.parse(body)).toMatchObject({
    currency: 'EUR',
    location_ref: 'store-7',
    line_items: [{ sku: `CUP "9" 'x'`, quantity: 1 }],
  });
  const expected = crypto
    .createHmac('sha256', secret)
    .update(`${header('X-POS-Timestamp')}\n${body}`)
    .digest('hex');
  expect(header('X-POS-Signature')).toBe(`sha256=${expected}`);
});
