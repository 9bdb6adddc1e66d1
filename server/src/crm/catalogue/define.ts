import { z } from '@strapi/utils';
import type { ModuleId } from '../../../../shared/contracts/modules';

/** An event of the CRM; what `docs/events.md`, the AsyncAPI document and the picker are made of. */
export interface EventDefinition {
  label: string;
  group: string;
  module?: ModuleId;
  description: string;
  /** JSON Schema 2020-12 of `data`. */
  schema: Record<string, unknown>;
  example: unknown;
}

export type EventDefinitions = Readonly<Record<string, EventDefinition>>;

/** Additional keys are allowed for: a payload hook may add some, and v1 only adds. */
const jsonSchema = (shape: z.ZodType): Record<string, unknown> => {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(shape, {
    override({ jsonSchema: node }) {
      delete node.additionalProperties;
    },
  }) as Record<string, unknown>;
  return schema;
};

interface EventInput extends Omit<EventDefinition, 'schema' | 'group' | 'module'> {
  data: z.ZodType;
}

/** Declares the events of one group. */
export const defineGroup = (
  group: string,
  module: ModuleId | undefined,
  events: Record<string, EventInput>
): EventDefinitions =>
  Object.fromEntries(
    Object.entries(events).map(([name, { data, ...rest }]) => [
      name,
      { ...rest, group, ...(module && { module }), schema: jsonSchema(data) },
    ])
  );
