import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';
import type { DatabaseKind } from '../support/databases';
import type { Answer } from '../support/http';
import { type Site, startSite } from '../support/site';

export const CRM = '/api/fw-crm/v1';

export interface LoggedEvent {
  event: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  data: any;
}

export interface EventLog {
  webhookId: number;
  /** What was queued since the last call, in order; each payload is held against its schema. */
  take(): Promise<LoggedEvent[]>;
}

/** @returns what checks an event's payload, compiled when it is first asked for; undefined for an unknown event */
const validators = async (site: Site): Promise<(event: string) => ValidateFunction | undefined> => {
  const ajv = new Ajv2020({ strict: true, validateFormats: false, allErrors: true });
  const { body } = await site.request('GET', `${CRM}/webhooks/events`);
  const schemas = new Map<string, object>(
    body.data.map(({ event, schema }: { event: string; schema: object }) => [event, schema])
  );
  const compiled = new Map<string, ValidateFunction>();
  return (event) => {
    const schema = schemas.get(event);
    if (!schema) return undefined;
    const validate = compiled.get(event) ?? ajv.compile(schema);
    compiled.set(event, validate);
    return validate;
  };
};

/**
 * A webhook whose deliveries are read from the queue: what was frozen, in the order in which it was
 * written. Start the site with `options: { webhooks: { dispatch: false } }`, so that nothing is sent.
 */
export const openEventLog = async (site: Site, events: string[] = ['*']): Promise<EventLog> => {
  const answer = await site.request('POST', `${CRM}/webhooks`, {
    body: { name: 'log', url: 'http://127.0.0.1:9/', events },
  });
  if (answer.status !== 201) throw new Error(`no webhook: ${answer.text}`);
  const validatorOf = await validators(site);
  let last = 0;
  return {
    webhookId: answer.body.id,
    async take() {
      const rows = (await site.control('sql', {
        statement: `select id, event, body from switchboard_deliveries where webhook_id = ${answer.body.id} and id > ${last} order by id`,
      })) as { id: number; event: string; body: string }[];
      last = Number(rows.at(-1)?.id ?? last);
      return rows.map(({ event, body }) => {
        const envelope = JSON.parse(body);
        const validate = validatorOf(event);
        if (!validate) throw new Error(`${event} is not in the catalogue`);
        if (!validate(envelope.data)) {
          throw new Error(`${event} does not match its schema: ${JSON.stringify(validate.errors)}`);
        }
        expect(envelope.event).toBe(event);
        return { event, data: envelope.data };
      });
    },
  };
};

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers
export type Ask = (method: string, path: string, body?: unknown) => Promise<Answer<any>>;

export interface WatchedSite {
  site: Site;
  log: EventLog;
  /** A request of the content API, at a path below `CRM`. */
  api: Ask;
  /** A request of the content manager, at the type's name and what follows it. */
  admin: Ask;
}

/** A site that keeps its events to itself, for all tests of the `describe` it is called in. */
export const useWatchedSite = (
  database: DatabaseKind,
  started: (watched: WatchedSite) => void | Promise<void>,
  options: Record<string, unknown> = {},
  env: Record<string, string> = {}
): void => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({
      database,
      options: { webhooks: { dispatch: false }, ...options },
      env,
    });
    await started({
      site,
      log: await openEventLog(site),
      api: (method, path, body) => site.request(method, `${CRM}${path}`, { body }),
      admin: (method, path, body) =>
        site.request(method, `/content-manager/collection-types/plugin::switchboard.${path}`, {
          body,
          as: 'admin',
        }),
    });
  }, 180_000);
  afterAll(() => site?.stop(), 60_000);
};

export const names = (events: LoggedEvent[]): string[] => events.map(({ event }) => event);

/** A contact as the routes give it, but for what each test says of its own. */
export const contactLike = (values: Record<string, unknown>): Record<string, unknown> => ({
  id: expect.any(String),
  email: null,
  first_name: null,
  last_name: null,
  name: null,
  phone: null,
  job_title: null,
  status: 'pending',
  lifecycle_stage: null,
  owner_id: null,
  company_id: null,
  address: null,
  score: 0,
  lifetime_value: 0,
  source: null,
  dates: {
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/),
    updated_at: expect.any(String),
    subscribed_at: null,
    unsubscribed_at: null,
    trashed_at: null,
  },
  fields: {},
  ...values,
});

const documents = (site: Site, kind: string, method: string, params: object) =>
  site.control('documents', { uid: `plugin::switchboard.${kind}`, method, params });

/** The document service and the query engine, in the site's process. */
export const inCode = (site: Site, kind: string) => ({
  create: (data: object) => documents(site, kind, 'create', { data }),
  update: (documentId: string, data: object) =>
    documents(site, kind, 'update', { documentId, data }),
  remove: (documentId: string) => documents(site, kind, 'delete', { documentId }),
  query: (method: string, params: object) =>
    site.control('query', { uid: `plugin::switchboard.${kind}`, method, params }),
});
