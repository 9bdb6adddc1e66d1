import type { FieldShape, Shape } from '../rules/shape';

/** The parts of an attribute of the host's that matter here. */
export interface AttributeShape {
  type: string;
  relation?: string;
  target?: string;
  mappedBy?: string;
  unstable_virtual?: boolean;
  multiple?: boolean;
  component?: string;
  repeatable?: boolean;
  components?: readonly string[];
  enum?: readonly string[];
}

/** The parts of a content type or a component that matter here. */
export interface ModelShape {
  uid?: string;
  attributes: Record<string, AttributeShape>;
  options?: { draftAndPublish?: boolean };
  pluginOptions?: { i18n?: { localized?: boolean } };
}

export interface Models {
  model(uid: string): ModelShape | undefined;
  /** Private by its own word, by its type's options or by the site's. */
  isPrivate(model: ModelShape, name: string): boolean;
}

/** Who wrote an entry is nobody else's business; other languages are documents' versions of their own. */
const LEFT_OUT = new Set(['createdBy', 'updatedBy', 'localizations']);

const hasDrafts = (model: ModelShape | undefined): boolean =>
  model?.options?.draftAndPublish === true;

/** Describes the public part of content types and components, each of them once. */
export const createDescriber = ({ model, isPrivate }: Models) => {
  const known = new Map<string, Shape>();

  const fieldOf = (attribute: AttributeShape): FieldShape | null => {
    const { type, relation = '' } = attribute;
    switch (type) {
      case 'password':
        return null;
      case 'relation':
        return {
          kind: 'relation',
          many: relation.endsWith('ToMany') || relation === 'morphMany',
          morph: relation.startsWith('morphTo'),
          ordered: attribute.mappedBy === undefined && !/^morph(One|Many)$/.test(relation),
          drafts: attribute.target !== undefined && hasDrafts(model(attribute.target)),
        };
      case 'media':
        return {
          kind: 'media',
          many: attribute.multiple === true,
          file: describe('plugin::upload.file'),
        };
      case 'component':
        return {
          kind: 'component',
          many: attribute.repeatable === true,
          shape: describe(String(attribute.component)),
        };
      case 'dynamiczone': {
        const shapes = (attribute.components ?? []).map((uid) => [uid, describe(uid)] as const);
        return { kind: 'zone', shapes: new Map(shapes) };
      }
      default:
        return { kind: 'scalar', type, ...(attribute.enum && { values: attribute.enum }) };
    }
  };

  const describe = (uid: string): Shape => {
    const found = known.get(uid);
    if (found) return found;
    const fields: [string, FieldShape][] = [];
    const shape: Shape = { fields };
    // Before its attributes are looked at: a component may contain itself.
    known.set(uid, shape);
    const described = model(uid);
    for (const [name, attribute] of Object.entries(described?.attributes ?? {})) {
      if (!described || LEFT_OUT.has(name) || attribute.unstable_virtual) continue;
      if (name === 'id' || name === 'documentId' || isPrivate(described, name)) continue;
      // A file says what it is, not where it is used.
      if (uid === 'plugin::upload.file' && attribute.type === 'relation') continue;
      const field = fieldOf(attribute);
      if (field) fields.push([name, field]);
    }
    return shape;
  };

  return describe;
};
