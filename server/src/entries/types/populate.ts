import type { Where } from '../../database/matching-documents';
import type { FieldShape, Shape } from '../rules/shape';

const isScalar = (field: FieldShape): boolean => field.kind === 'scalar';

const populateField = (field: FieldShape, within: readonly Shape[]): unknown => {
  switch (field.kind) {
    case 'scalar':
      return undefined;
    case 'relation':
      if (field.morph) return {};
      return { select: ['id', 'documentId', ...(field.drafts ? ['publishedAt'] : [])] };
    case 'media':
      return { select: ['id', 'documentId', ...namesOf(field.file)] };
    case 'component':
      return within.includes(field.shape) ? undefined : populateShape(field.shape, within);
    case 'zone': {
      const on = [...field.shapes]
        .filter(([, shape]) => !within.includes(shape))
        .map(([uid, shape]) => [uid, populateShape(shape, within)] as const);
      return { on: Object.fromEntries(on) };
    }
  }
};

const namesOf = ({ fields }: Shape): string[] =>
  fields.filter(([, field]) => isScalar(field)).map(([name]) => name);

const populateShape = (shape: Shape, within: readonly Shape[]): unknown => ({
  populate: populateOf(shape, within),
});

/** What the host's query engine has to load beside a row's own columns. */
export const populateOf = (shape: Shape, within: readonly Shape[] = []): Where => {
  const inside = [...within, shape];
  return Object.fromEntries(
    shape.fields
      .map(([name, field]) => [name, populateField(field, inside)] as const)
      .filter(([, populate]) => populate !== undefined)
  );
};
