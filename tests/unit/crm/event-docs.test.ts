import Ajv2020 from 'ajv/dist/2020';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { CRM_EVENTS } from '../../../server/src/crm/catalogue';

const ROOT = path.resolve(__dirname, '../../..');

/** The table of docs/contract-webhooks.md#events, but for `ping`. */
const TABLE =
  'contact.created contact.updated contact.deleted contact.tagged contact.untagged contact.subscribed contact.unsubscribed form.submitted task.created task.completed company.created company.updated company.deleted deal.created deal.updated deal.stage_changed deal.won deal.lost deal.deleted email.opened email.clicked email.bounced email.complained campaign.sent email.received'.split(
    ' '
  );

it('declares every event of the table and no other', () => {
  expect(Object.keys(CRM_EVENTS).sort()).toEqual([...TABLE].sort());
});

const ajv = new Ajv2020({ strict: true, validateFormats: false });

it.each(TABLE)('the example of %s matches its schema', (name) => {
  const { schema, example, label, group, description } = CRM_EVENTS[name]!;
  const validate = ajv.compile(schema);
  expect(validate(example) || validate.errors).toBe(true);
  expect([label, group, description].every((text) => text.length > 3)).toBe(true);
});

it('docs/events.md and docs/asyncapi.json are fresh', () => {
  const { status, stderr } = spawnSync(
    process.execPath,
    ['scripts/generate-event-docs.mjs', '--check'],
    { cwd: ROOT, encoding: 'utf8', env: { ...process.env, NODE_OPTIONS: '' } }
  );
  expect([status, stderr]).toEqual([0, '']);
}, 60_000);

it('every reference of docs/asyncapi.json leads somewhere', () => {
  const document = JSON.parse(fs.readFileSync(path.join(ROOT, 'docs/asyncapi.json'), 'utf8'));
  const resolve = (reference: string): unknown =>
    reference
      .slice(2)
      .split('/')
      .reduce((node: Record<string, unknown> | undefined, key) => {
        return node?.[key] as Record<string, unknown> | undefined;
      }, document);
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(
    ([, reference]) => String(reference)
  );
  expect(references.length).toBeGreaterThan(TABLE.length);
  expect(references.filter((reference) => resolve(reference) === undefined)).toEqual([]);
});
