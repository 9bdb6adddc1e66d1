import fs from 'node:fs';
import path from 'node:path';
import type { DeliveryState, Subject } from '../../shared/contracts/webhooks';
import { type DatabaseKind, runSql } from './databases';
import { ROOT } from './paths';
import { type Site, type SiteOptions, startSite } from './site';

const FOLDER = path.join(ROOT, 'tests/fixtures/databases');

/** What scripts/make-database-fixture.mjs wrote down of a fixture that its database does not tell. */
export interface FixtureNotes {
  /** What the webhooks' URLs begin with; `startFixture` puts a receiver's there. */
  receiver: string;
  admin: { email: string; password: string };
  /** Oldest first, with what else it is told to be, headers of its own included. */
  webhooks: {
    id: number;
    name: string;
    secret: string;
    headers?: Record<string, string>;
    [setting: string]: unknown;
  }[];
  connections: { id: number; name: string; key: string; secret: string }[];
  deliveries: {
    delivery_id: string;
    webhook_id: number;
    event: string;
    status: string;
    tries: number;
    body: string;
    state?: DeliveryState;
    subject?: Subject | null;
    replayed?: boolean;
    error?: string | null;
  }[];
  /** By resource of `/api/fw-crm/v1`, and `trashed`, the contacts in the bin. */
  records: Record<string, Record<string, unknown>[]>;
  /** Of tills, newest first. */
  events: { event_id: number; external_id: string; kind: string; state: string }[];
  levels: { sku: string; location: string; quantity: number }[];
  /** `data` of what further routes answered. */
  answers?: Record<string, object>;
  /** Has the role CRM Manager, from which somebody took two permissions away. */
  manager: { email: string; password: string; applicationPassword: string };
  /** A role of the site's own. */
  role: { name: string; actions: string[] };
  endUserActions: string[];
  tokens: { full: string; readOnly: string; custom: string };
  customTokenActions: string[];
}

/** The versions of which there are databases, oldest first. */
export const fixtureVersions = (): string[] => fs.readdirSync(FOLDER).sort();

/** @param receiverUrl as given to `loadFixture`: what was sent may name it too */
export const fixtureNotes = (
  version: string,
  kind: DatabaseKind,
  receiverUrl?: string
): FixtureNotes => {
  const text = fs.readFileSync(path.join(FOLDER, version, `${kind}.json`), 'utf8');
  const { receiver } = JSON.parse(text) as FixtureNotes;
  return JSON.parse(text.replaceAll(receiver, receiverUrl ?? receiver));
};

/**
 * Puts a database of an earlier version into an empty one.
 * @param receiverUrl where its webhooks post to; a name that leads nowhere if left out
 */
export const loadFixture = async (
  version: string,
  kind: DatabaseKind,
  databaseName: string,
  receiverUrl?: string
): Promise<void> => {
  const text = fs.readFileSync(path.join(FOLDER, version, `${kind}.sql`), 'utf8');
  const { receiver } = fixtureNotes(version, kind);
  await runSql(kind, databaseName, text.replaceAll(receiver, receiverUrl ?? receiver));
};

/**
 * A site on a copy of a database of an earlier version. Its finished deliveries would soon be old
 * enough to be forgotten; they are kept unless `options.webhooks.logDays` says otherwise.
 */
export const startFixture = (
  version: string,
  { receiverUrl, options = {}, ...rest }: SiteOptions & { receiverUrl?: string }
): Promise<Site> =>
  startSite({
    prepare: (kind, name) => loadFixture(version, kind, name, receiverUrl),
    ...rest,
    options: {
      ...options,
      webhooks: { logDays: 3650, ...(options.webhooks as Record<string, unknown>) },
    },
  });
