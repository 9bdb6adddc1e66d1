import { z } from '@strapi/utils';
import { isSupportedCountry } from 'libphonenumber-js';
import { parseCidrList } from '../net/address';

const positive = (maximum: number) => z.number().int().min(1).max(maximum);

const cidrList = z.array(z.string()).superRefine((list, context) => {
  try {
    parseCidrList(list);
  } catch (error) {
    context.addIssue({ code: 'custom', message: (error as Error).message });
  }
});

const webhooks = z.strictObject({
  /** The library that posts; `undici` is an earlier one, in whose place `node` posts. */
  client: z.enum(['got', 'node', 'undici']).default('got'),
  /** Attempts under way at once on this node. */
  concurrency: positive(1000).default(64),
  /** Attempts under way at once to one webhook on this node. */
  concurrencyPerWebhook: positive(1000).default(16),
  /** Threads that post, next to the site's own; 0: that one posts. */
  threads: z.number().int().min(0).max(64).default(1),
  /** One deadline for an attempt, from DNS to the last byte of the answer, in milliseconds. */
  timeoutMs: positive(60_000).default(10_000),
  retryScheduleSeconds: z
    .array(positive(30 * 86_400))
    .max(20)
    .default([60, 300, 1800, 7200, 21_600, 43_200]),
  disableAfterFailures: positive(1_000_000).default(20),
  /** A webhook without a successful attempt for this long is switched off; fractions are allowed. */
  disableAfterFailingHours: z.number().positive().max(8760).default(24),
  logDays: positive(3650).default(30),
  /** How long each published event is kept, with or without subscribers; 0: none is. */
  journalDays: z.number().int().min(0).max(3650).default(0),
  allowPrivateNetworks: z.union([z.boolean(), cidrList]).default(false),
  /** This node sends; `false`: another node does. */
  dispatch: z.boolean().default(true),
  pollSeconds: positive(3600).default(5),
  /** The address for an e-mail when a webhook is switched off; none is sent if it is absent. */
  notifyEmail: z.email().optional(),
});

const isTimeZone = (name: string): boolean => {
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone: name }));
  } catch {
    return false;
  }
};

const pos = z.strictObject({
  ratePerMinute: positive(1_000_000).default(300),
  failedAuthPerMinute: positive(1_000_000).default(30),
  maxBodyBytes: positive(16 * 1024 * 1024).default(262_144),
  timestampWindowSeconds: positive(86_400).default(300),
  refundGraceHours: z.number().min(0).max(8760).default(24),
  /** This node applies accepted records; `false`: another node does. */
  process: z.boolean().default(true),
  /** The shop's time zone (IANA), by which days of sales begin; defaults to the server's. */
  timeZone: z
    .string()
    .refine(isTimeZone, 'must be the name of a time zone, such as Europe/London')
    .optional(),
  /** The country (ISO 3166) whose phone numbers customers give without a prefix. */
  country: z
    .string()
    .refine(isSupportedCountry, 'must be an ISO 3166 country code, such as GB')
    .optional(),
});

const redis = z.union(
  [
    z.string().regex(/^rediss?:\/\/./),
    z.record(z.string(), z.unknown()).refine((one) => !('keyPrefix' in one)),
  ],
  {
    message:
      'must be a redis:// or rediss:// URL, or connection options of ioredis without keyPrefix',
  }
);

const scheduler = z.strictObject({
  /** The means to share work among nodes: only the database, or tickets on a Redis. */
  engine: z.enum(['database', 'bullmq']).default('database'),
  redis: redis.default('redis://127.0.0.1:6379'),
  /** Every key in Redis begins with it. */
  prefix: z
    .string()
    .regex(
      /^[\w.{}-]{1,64}$/,
      'must be 1 to 64 letters, digits, hyphens, dots, underscores or braces'
    )
    .default('switchboard'),
});

/** Optional parts of the plugin; the webhooks are always there. */
const features = z.strictObject({
  crm: z.boolean().default(true),
  /** The tills and the stock. */
  pos: z.boolean().default(true),
});

/** A field of a payload: the attribute it is read from, or a function of the entry. */
const fieldSource = z.union([
  z.string().min(1),
  z.custom<(entry: Record<string, unknown>) => unknown>((value) => typeof value === 'function', {
    message: 'must be the name of an attribute or a function of the entry',
  }),
]);

const source = z.strictObject(
  {
    contentType: z.string().min(1),
    fields: z.record(z.string(), fieldSource).default({}),
  },
  {
    error: ({ input }) =>
      Array.isArray(input)
        ? 'must be one mapping, { contentType, fields }, not a list; a list of content types goes into sources.entries'
        : undefined,
  }
);

const form = z.strictObject({
  contentType: z.string().min(1),
  title: z.string().min(1),
  addSender: z.boolean().default(true),
  fields: z.record(z.string(), fieldSource).default({}),
});

/** Keys of mail providers whose event webhooks are received; docs/email.md. */
const email = z.strictObject({
  sendgrid: z.strictObject({ publicKey: z.string().min(1) }).optional(),
  mailgun: z.strictObject({ signingKey: z.string().min(1) }).optional(),
});

const stock = z.strictObject({
  contentType: z.string().min(1),
  sku: z.string().min(1),
  gtin: z.string().min(1).optional(),
  quantity: z.string().min(1).optional(),
  /** Attributes of an item for the catalogue of tills; `price` is in major units. */
  name: z.string().min(1).optional(),
  price: z.string().min(1).optional(),
  /** The name of an attribute, or a code that holds for all products. */
  currency: z.string().min(1).optional(),
  /** The reaction to a number that the site writes into a product: an adjustment, or a 400. */
  onProductWrite: z.enum(['adjust', 'refuse']).default('adjust'),
});

/** The kinds of CRM object that a site may map its own content type to. */
export const SOURCE_KINDS = ['contact', 'tag', 'company', 'deal', 'task', 'campaign'] as const;

/** Content types of the site's own whose writes are published as `entry.*`. */
const entries = z.union(
  [
    z.literal('*'),
    z.array(
      z.union([
        z.string().min(1),
        z.strictObject({ contentType: z.string().min(1), drafts: z.boolean().default(false) }),
      ])
    ),
  ],
  {
    error: () => "must be '*' or a list of content types: uids, or { contentType, drafts: true }",
  }
);

const mapped = Object.fromEntries(SOURCE_KINDS.map((kind) => [kind, source.optional()])) as Record<
  (typeof SOURCE_KINDS)[number],
  z.ZodOptional<typeof source>
>;

const sources = z
  .strictObject({
    ...mapped,
    entries: entries.optional(),
    /** Files of the media library, published as `media.*`. */
    media: z.boolean().optional(),
  })
  .default({});

/** Everything a site may set under `switchboard` in `config/plugins`; docs/options.md lists them. */
export const optionsSchema = z.strictObject({
  features: features.prefault({}),
  scheduler: scheduler.prefault({}),
  webhooks: webhooks.prefault({}),
  pos: pos.prefault({}),
  sources,
  forms: z.array(form).default([]),
  email: email.default({}),
  stock: stock.optional(),
});

export type Options = z.infer<typeof optionsSchema>;

/** Checks a site's options and fills in defaults; throws an Error that names each wrong option and stops the boot. */
export const parseOptions = (input: unknown): Options => {
  const result = optionsSchema.safeParse(input ?? {});
  if (result.success) return result.data;
  const lines = result.error.issues.map((issue) => {
    const unknownKeys = issue.code === 'unrecognized_keys' ? issue.keys : [];
    const at = ['switchboard', ...issue.path.map(String), ...unknownKeys.slice(0, 1)].join('.');
    const allowed = 'values' in issue ? ` Allowed: ${issue.values.join(', ')}.` : '';
    return `  ${at}: ${issue.message}.${allowed}`;
  });
  throw new Error(
    `The options of the plugin switchboard (config/plugins) are wrong:\n${lines.join('\n')}`
  );
};
