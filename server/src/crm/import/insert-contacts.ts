import type { Core, UID } from '@strapi/strapi';
import { currentExecutor, table } from '../../database/connection';
import { toData } from '../resources/to-data';
import { publishScope } from '../sources/publish-scope';
import { getInspected } from '../sources/registry';
import { inScope, type Scope } from '../sources/scope';
import { isWanted, touchDocuments, touchingOf } from '../sources/touch';
import { emailKey } from '../upkeep/email-key';
import type { ImportRow } from './columns';
import type { ImportTags } from './import-tags';

const CONTACT = 'plugin::switchboard.contact' as UID.ContentType;

interface Inserted {
  id: number;
  documentId: string;
  email_key: string;
}

interface JoinTable {
  name: string;
  joinColumn: { name: string };
  inverseJoinColumn: { name: string };
  orderColumnName?: string;
  inverseOrderColumnName?: string;
}

const insertedRows = async (
  strapi: Core.Strapi,
  rows: readonly ImportRow[]
): Promise<Map<string, Inserted>> => {
  const keys = rows.map(({ email }) => emailKey(email));
  const found = (await strapi.db
    .queryBuilder(CONTACT)
    .init({ select: ['id', 'documentId', 'email_key'], where: { email_key: { $in: keys } } })
    .execute()) as Inserted[];
  return new Map(found.map((row) => [row.email_key, row]));
};

/**
 * Links contacts to tags in the relation's own table: the host's `connect` renumbers all contacts of
 * a tag at each call, and a tag of an import may have all of them.
 */
const linkTags = async (
  strapi: Core.Strapi,
  scope: Scope,
  tags: ImportTags,
  rows: readonly ImportRow[]
): Promise<void> => {
  const inserted = await insertedRows(strapi, rows);
  const watched = getInspected(strapi, 'contact');
  const { joinTable } = strapi.db.metadata.get(CONTACT).attributes.tags as unknown as {
    joinTable: JoinTable;
  };
  const links: Record<string, unknown>[] = [];
  for (const row of rows) {
    const contact = inserted.get(emailKey(row.email) ?? '');
    if (!contact) continue;
    const ids = await tags.rowIdsOf(row.tags);
    ids.forEach((tagId, index) =>
      links.push({
        [joinTable.joinColumn.name]: contact.id,
        [joinTable.inverseJoinColumn.name]: tagId,
        ...(joinTable.orderColumnName && { [joinTable.orderColumnName]: index + 1 }),
        ...(joinTable.inverseOrderColumnName && { [joinTable.inverseOrderColumnName]: contact.id }),
      })
    );
  }
  // The scope's own description of the type, which is what its touches are filed under.
  const [noted] = [...scope.touched.keys()].filter(({ source }) => source.kind === 'contact');
  const touching = touchingOf(watched, 'update', { tags: [] });
  if (await isWanted(scope, noted ?? watched, touching)) {
    const ids = [...inserted.values()].map(({ documentId }) => documentId);
    await touchDocuments(strapi, scope, noted ?? watched, ids, touching);
  }
  const executor = await currentExecutor(strapi);
  for (let start = 0; start < links.length; start += 200) {
    await table(strapi, executor, joinTable.name).insert(links.slice(start, start + 200));
  }
};

/** Inserts contacts that are new, and their tags, as one change; within the current transaction. */
export const insertContacts = (
  strapi: Core.Strapi,
  tags: ImportTags,
  rows: readonly ImportRow[]
): Promise<void> =>
  inScope(
    strapi,
    { compound: true },
    (scope) => publishScope(strapi, scope),
    async (scope) => {
      const { source, tagSource } = getInspected(strapi, 'contact');
      const data: Record<string, unknown>[] = [];
      for (const { input } of rows) {
        data.push(await toData(strapi, source, tagSource.uid, { source: 'import', ...input }));
      }
      await strapi.db.query(CONTACT).createMany({ data: data as never });
      const tagged = rows.filter((row) => row.tags.length > 0);
      if (tagged.length > 0) await linkTags(strapi, scope, tags, tagged);
    }
  );
