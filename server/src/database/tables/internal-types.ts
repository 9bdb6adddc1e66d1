import type { Core, UID } from '@strapi/strapi';
import type { App } from '../../app';

type Attribute = Record<string, unknown>;

/**
 * Kinds of attributes. Each use gets an object of its own: the host writes the column's name into it.
 */

/** Epoch milliseconds: a number to `strapi.documents`, a bigint to statements, on every database. */
export const epoch = (): Attribute => ({ type: 'integer', columnType: { type: 'bigInteger' } });

export const now = (): Attribute => ({ ...epoch(), default: () => Date.now() });

/** JSON in a text column: statements read it as it was written, whatever the database's JSON does. */
export const jsonText = (): Attribute => ({
  type: 'json',
  columnType: { type: 'text', args: ['longtext'] },
});

const PREFIX = 'plugin::switchboard.';

interface InternalType {
  singularName: string;
  pluralName: string;
  displayName: string;
  collectionName: string;
  attributes: Record<string, Attribute>;
  indexes?: { name: string; columns: string[]; type?: 'unique' }[];
}

/**
 * A content type that only the plugin writes: read with `strapi.documents`, visible to lifecycle
 * subscribers, carried by `strapi export` and `transfer`. Hidden from the content manager and the
 * content-type builder; it has no controller, so no core routes and no actions.
 */
export const internalType = (type: InternalType): { schema: unknown } => ({
  schema: {
    kind: 'collectionType',
    collectionName: type.collectionName,
    info: {
      singularName: type.singularName,
      pluralName: type.pluralName,
      displayName: type.displayName,
    },
    options: { draftAndPublish: false },
    pluginOptions: {
      'content-manager': { visible: false },
      'content-type-builder': { visible: false },
    },
    attributes: {
      // Before what may be long: SQLite reads a row from its beginning.
      created_at: now(),
      site_instance: { type: 'string', private: true },
      ...type.attributes,
    },
    indexes: type.indexes,
  },
});

/**
 * The host's own attributes of a content type, which these do not use. Two foreign keys to administrators
 * with an index each and three more times would be written with every delivery; the times are the
 * plugin's own, under the names that its answers have.
 */
const UNUSED = ['createdAt', 'updatedAt', 'publishedAt', 'createdBy', 'updatedBy'];

interface HostContentTypes {
  extend(uid: string, change: (type: { attributes: Record<string, Attribute> }) => void): unknown;
}

interface HostContext {
  params: { model?: string };
  notFound(): unknown;
}

interface HostRouter {
  use(path: string, middleware: (ctx: HostContext, next: () => Promise<void>) => unknown): unknown;
}

/** The host lets administrators read types that it hides; these are read with the plugin's routes. */
const shutContentManager = (strapi: Core.Strapi, uids: ReadonlySet<string>): void => {
  const router = strapi.server.router as unknown as HostRouter;
  for (const path of ['collection-types', 'single-types', 'relations']) {
    router.use(`/content-manager/${path}/:model`, (ctx, next) =>
      uids.has(String(ctx.params.model)) ? ctx.notFound() : next()
    );
  }
};

interface GraphqlExtension {
  shadowCRUD(uid: string): { disable(): unknown };
}

type Data = Record<string, unknown>;

/** The document service, as the plugin writes its internal types with it. */
interface InternalDocuments {
  create(values: { data: Data }): Promise<{ id: number; documentId: string }>;
  update(values: { documentId: string; data: Data }): Promise<unknown>;
  delete(values: { documentId: string }): Promise<unknown>;
}

export const documentsOf = (strapi: Core.Strapi, uid: string): InternalDocuments =>
  strapi.documents(uid as UID.ContentType) as unknown as InternalDocuments;

/**
 * Notes the id that a row was made with, and makes a row this site's own when somebody here switches
 * it on. An import runs without lifecycles: what it brings keeps what it had.
 */
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
  const contentTypes = strapi.get('content-types') as unknown as HostContentTypes;
  const graphql = strapi.plugin('graphql')?.service('extension') as GraphqlExtension | undefined;
  for (const name of names) {
    const uid = `${PREFIX}${name}`;
    contentTypes.extend(uid, ({ attributes }) => {
      for (const unused of UNUSED) delete attributes[unused];
      attributes.site_instance = {
        ...attributes.site_instance,
        default: () => site.instance,
      };
    });
    graphql?.shadowCRUD(uid).disable();
  }
  shutContentManager(strapi, new Set(names.map((name) => `${PREFIX}${name}`)));
};
