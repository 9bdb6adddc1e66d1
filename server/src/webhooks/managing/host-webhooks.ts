import type { Core } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import { currentExecutor, table } from '../../database/connection';
import { parseWithRules } from '../../http/validation';
import { isRecord } from '../../runtime/is-record';
import {
  CHANGES,
  type HostWebhook,
  type LeftOut,
  mapEvents,
  mapHeaders,
} from '../rules/host-webhooks';
import { chooseableEvents } from '../catalogue';
import { type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import { createWebhookInput } from './inputs';
import { webhookRules } from './webhook-rules';
import type { WebhooksService } from './webhooks-service';

interface HostWebhookStore {
  findWebhooks(): Promise<HostWebhook[]>;
}

/** Which of the host's webhooks it is about. */
interface Named {
  host_webhook: string;
  name: string;
  url: string;
}

interface WithoutCounterpart {
  no_counterpart: { event: string; reason: string }[];
}

export interface CopiedWebhook extends Named, WithoutCounterpart {
  id: number;
  events: string[];
  /** Names alone. */
  headers: string[];
  headers_left_out: LeftOut[];
  /** Of the copy; not shown again but to whoever may reveal it. */
  secret: string | null;
}

/** What came of copying the host's webhooks, each of which is in one of the lists. */
export interface HostCopy {
  copied: CopiedWebhook[];
  /** Of one with that name and address there is a webhook already. */
  present: (Named & { id: number })[];
  /** None of its events has a counterpart. */
  skipped: (Named & WithoutCounterpart)[];
  /** What a webhook here may not be: its address is refused, say. */
  refused: (Named & { reason: string })[];
  /** What a receiver will find changed. */
  changes: readonly string[];
}

/** Makes webhooks here of the host's own; docs/from-strapi-webhooks.md. */
export interface HostWebhooksService {
  /**
   * Each as an inactive webhook with its events and headers. The host's own stay as they are; one that
   * is there already, by its name and address, is left alone.
   */
  copy(): Promise<HostCopy>;
}

export const createHostWebhooksService = ({
  strapi,
}: {
  strapi: Core.Strapi;
}): HostWebhooksService => {
  const isPresent = async ({ name, url }: Named): Promise<number | undefined> => {
    const rows = (await table(strapi, await currentExecutor(strapi), WEBHOOKS_TABLE)
      .select('id', 'name', 'url')
      .where({ name })
      .orderBy('id')) as Pick<WebhookRow, 'id' | 'name' | 'url'>[];
    // A database may take names for equal that are not.
    const same = rows.find((row) => row.name === name && row.url === url);
    return same && Number(same.id);
  };

  const defaultHeaders = (): Record<string, unknown> => {
    const given: unknown = strapi.config.get('server.webhooks.defaultHeaders');
    return isRecord(given) ? given : {};
  };

  return {
    async copy() {
      const store = strapi.get('webhookStore') as unknown as HostWebhookStore;
      const offered = new Set((await chooseableEvents(strapi)).map(({ event }) => event));
      const webhooks = strapi.service('plugin::switchboard.webhooks') as unknown as WebhooksService;
      const result: HostCopy = {
        copied: [],
        present: [],
        skipped: [],
        refused: [],
        changes: CHANGES,
      };
      const theirs = await store.findWebhooks();
      for (const one of theirs.sort((a, b) => Number(a.id) - Number(b.id))) {
        const named = {
          host_webhook: String(one.id),
          name: String(one.name ?? '').trim(),
          url: String(one.url ?? '').trim(),
        };
        const present = await isPresent(named);
        if (present !== undefined) {
          result.present.push({ ...named, id: present });
          continue;
        }
        const events = mapEvents(one.events ?? [], (event) => offered.has(event));
        const noCounterpart = events.leftOut.map(({ name, reason }) => ({ event: name, reason }));
        if (events.kept.length === 0) {
          result.skipped.push({ ...named, no_counterpart: noCounterpart });
          continue;
        }
        const headers = mapHeaders(one.headers ?? {}, defaultHeaders());
        try {
          const { name, url } = named;
          const given = { name, url, events: events.kept, headers: headers.kept, active: false };
          const input = await parseWithRules(createWebhookInput, given, webhookRules(strapi));
          const made = await webhooks.create(input);
          result.copied.push({
            ...named,
            id: made.id,
            events: made.events,
            headers: made.header_names,
            secret: made.secret ?? null,
            no_counterpart: noCounterpart,
            headers_left_out: headers.leftOut,
          });
        } catch (error) {
          if (!(error instanceof errors.ValidationError)) throw error;
          result.refused.push({ ...named, reason: error.message });
        }
      }
      return result;
    },
  };
};
