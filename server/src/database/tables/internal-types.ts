import type { Core, UID } from '@strapi/strapi';
import type { Context, Next } from 'koa';
import type { App } from '../../app';
import type { PlainTable } from './plain-tables';

type Attribute = Record<string, unknown>;

/** Kinds of attributes. Each use gets an object of its own: the host writes the column's name into it. */

/** Epoch milliseconds: a number to `strapi.documents`, a bigint to statements, on every database. */
export const epoch = () => ({ type: 'integer' as const, columnType: { type: 'bigInteger' } });

export const now = () => ({ ...epoch(), default: () => Date.now() });

/** JSON in a text column: statements read it exactly as written, unlike the database's JSON types. */
export const jsonText = () => ({
  type: 'json' as const,
  columnType: { type: 'text', args: ['longtext'] },
});

interface InternalType<Attributes> extends Pick<PlainTable, 'indexes'> {
  singularName: string;
  pluralName: string;
  displayName: string;
  collectionName: string;
  attributes: Attributes;
}

/** The value of an attribute's column, as the drivers hand it out. */
type ValueOf<A> = A extends { type: 'string' | 'text' | 'json' }
  ? string
  : A extends { type: 'boolean' }
    ? boolean | number
    : A extends { type: 'float' } | { columnType: unknown }
      ? number | string
      : number;

/** The column of an attribute; none of a relation, which is seen by the column of its id. */
type ColumnOf<Name, A> = A extends { type: 'relation' }
  ? never
  : A extends { columnName: infer Column extends string }
    ? Column
    : Name;

type Columns<Attributes, Filled> = {
  [Name in keyof Attributes as ColumnOf<Name, Attributes[Name]>]:
    ValueOf<Attributes[Name]> | (Name extends Filled ? never : null);
};

/** A row of a plugin content type. Attributes in `Filled` are never null; `Known` narrows the types of columns. */
export type InternalRow<Type, Filled, Known = unknown> = Type extends {
  schema: { attributes: infer Attributes };
}
  ? Omit<Columns<Attributes, Filled | 'created_at'>, keyof Known> &
      Known & { id: number; document_id: string }
  : never;

/**
 * A content type that only the plugin writes: read with `strapi.documents`, visible to lifecycle subscribers, exported
 * and transferred; hidden from content manager and content-type builder, without controllers, routes and actions.
 */
export const internalType = <const Attributes extends Record<string, Attribute>>({
  collectionName,
  attributes,
  indexes,
  ...info
}: InternalType<Attributes>) => ({
  schema: {
    kind: 'collectionType',
    collectionName,
    info,
    options: { draftAndPublish: false },
    pluginOptions: {
      'content-manager': { visible: false },
      'content-type-builder': { visible: false },
    },
    attributes: {
      // Before what may be long: SQLite reads a row from its beginning.
      created_at: now(),
      site_instance: { type: 'string' as const, private: true },
      ...attributes,
    },
    indexes,
  },
});

/** Host attributes that these types do not use: two foreign keys and three times with every delivery. */
const UNUSED = ['createdAt', 'updatedAt', 'publishedAt', 'createdBy', 'updatedBy'];

type Data = Record<string, unknown>;

/** The document service, as the plugin writes its internal types with it. */
interface InternalDocuments {
  create(values: { data: Data }): Promise<{ id: number; documentId: string }>;
  update(values: { documentId: string; data: Data }): Promise<unknown>;
  delete(values: { documentId: string }): Promise<unknown>;
}

export const documentsOf = (strapi: Core.Strapi, uid: string): InternalDocuments =>
  strapi.documents(uid as UID.ContentType) as unknown as InternalDocuments;

/** Notes the id a row was created with; activating a row here makes it this site's. Imports run without lifecycles. */
export const followInternalRows = (app: App, uid: string, tableName: string): void => {
  app.strapi.db.lifecycles.subscribe({
    models: [uid],
    async afterCreate({ result }) {
      const { id } = result as { id: number };
      const db = await app.db.current();
      await db.table(tableName).where({ id }).update({ origin_id: id });
    },
    beforeUpdate({ params }) {
      const data = params.data as Data | undefined;
      // A copy: what the caller gave stays as it is.
      if (data?.active === true) params.data = { ...data, site_instance: app.site.instance };
    },
  });
};

/** To be called in `register`, before the host makes models of its content types. */
export const prepareInternalTypes = (
  { strapi, site }: Pick<App, 'strapi' | 'site'>,
  names: readonly string[]
): void => {
  const contentTypes = strapi.get<{
    extend(uid: string, change: (type: { attributes: Record<string, Attribute> }) => void): unknown;
  }>('content-types');
  const graphql = strapi.plugin('graphql')?.service('extension') as
    { shadowCRUD(uid: string): { disable(): unknown } } | undefined;
  const uids = new Set(names.map((name) => `plugin::switchboard.${name}`));
  for (const uid of uids) {
    contentTypes.extend(uid, ({ attributes }) => {
      for (const unused of UNUSED) delete attributes[unused];
      attributes.site_instance = { ...attributes.site_instance, default: () => site.instance };
    });
    graphql?.shadowCRUD(uid).disable();
  }
  // The host lets administrators read types that it hides; these are read with the plugin's routes.
  for (const path of ['collection-types', 'single-types', 'relations']) {
    strapi.server.router.use(`/content-manager/${path}/:model`, (ctx: Context, next: Next) =>
      uids.has(String(ctx.params.model)) ? ctx.notFound() : next()
    );
  }
};
