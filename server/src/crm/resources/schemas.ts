import { z } from '@strapi/utils';
import { pageQuery } from '../../http/pagination';
import { readOnly } from '../../http/validation';
import { DOCUMENT_ID, KIND_DEFINITIONS, type KindDefinition } from '../mapping/kinds';
import { type Kind, KINDS } from '../rules';

/** zod schemas of what the CRM's routes take and answer; `strapi openapi generate` documents them. */

const DATES = 'dates.';
/** The key of a REST input: `trashed_at` for `dates.trashed_at`. */
const keyOf = (path: string): string => path.replace(DATES, '');

const shapeOf = ({ fields }: KindDefinition): z.ZodObject => {
  const of = (isDate: boolean): Record<string, z.ZodType> =>
    Object.fromEntries(
      fields
        .filter(({ path }) => path.startsWith(DATES) === isDate)
        .map(({ path, output }) => [keyOf(path), output])
    );
  const { fields: custom, ...plain } = of(false);
  const dates = of(true);
  return z.object({
    id: z.string(),
    ...plain,
    ...(Object.keys(dates).length > 0 && { dates: z.object(dates) }),
    ...(custom && { fields: custom }),
  });
};

const byKind = <T>(of: (definition: KindDefinition) => T): Readonly<Record<Kind, T>> =>
  Object.fromEntries(KINDS.map((kind) => [kind, of(KIND_DEFINITIONS[kind])])) as Record<Kind, T>;

/** The objects of REST answers and event payloads (shared/contracts/crm.ts). */
export const SHAPES = byKind(shapeOf);

/** `update`: each key is optional, and what is absent stays. */
interface KindInputs {
  create: z.ZodType<Record<string, unknown>>;
  update: z.ZodType<Record<string, unknown>>;
  query: z.ZodObject;
}

const tags = z
  .array(z.string().regex(DOCUMENT_ID, { message: 'is not the id of a tag' }))
  .max(1000)
  .optional();

const isSomebody = (input: Readonly<Record<string, unknown>>): boolean =>
  [input.email, input.first_name, input.last_name, input.phone].some(Boolean);
const somebody = { message: 'give at least an email, a name or a phone number', path: ['email'] };

const filterText = z.string().min(1).max(255).optional();
const filterId = z.string().regex(DOCUMENT_ID, { message: 'is not the id of a record' }).optional();
/** `true` lists the bin instead of what is not in it. */
const trashed = z.enum(['true', 'false']).default('false');
/** Words of a name, part of an e-mail address or of a phone number; docs/management-api.md#finding-contacts. */
const q = z.string().trim().min(1).max(255).optional();

const inputsOf = ({ kind, fields, filters }: KindDefinition): KindInputs => {
  const hasDates = fields.some(({ path }) => path.startsWith(DATES));
  const hasBin = fields.some(({ path }) => path === `${DATES}trashed_at`);
  const written = z.strictObject({
    id: readOnly,
    ...(hasDates && { dates: readOnly }),
    ...Object.fromEntries(
      fields.flatMap(({ path, input }) => (input ? [[keyOf(path), input]] : []))
    ),
    ...(kind === 'contact' && { tags }),
  });
  return {
    create: kind === 'contact' ? written.refine(isSomebody, somebody) : written,
    update: written.partial(),
    query: z.object({
      ...pageQuery,
      ...(kind === 'contact' && { q }),
      ...Object.fromEntries(
        filters.map((name) => [name, name.endsWith('_id') ? filterId : filterText])
      ),
      ...(hasBin && { trashed }),
    }),
  };
};

export const INPUTS = byKind(inputsOf);

/** True if a contact can hold a value: a name that is too long must not cost a sale or an enquiry. */
export const fitsContact = (key: string, value: unknown): boolean =>
  INPUTS.contact.update.safeParse({ [key]: value }).success;
