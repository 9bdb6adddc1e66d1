import { useAuth } from '@strapi/strapi/admin';
import { useMemo } from 'react';
import type { ModuleId } from '../../../shared/contracts/modules';
import { searchOf, type ViewedKind, viewedKind, viewsOf } from '../content-manager/views';
import { useRecordTypes } from '../services/settings';
import type { TextKey } from '../utils/text';

/** A list of the content manager in the plugin's navigation. */
export interface RecordList {
  address: string;
  label: TextKey;
}

const LISTS = [
  { kind: 'contact', label: 'nav.contacts' },
  { kind: 'company', label: 'nav.companies', module: 'companies' },
  { kind: 'deal', label: 'nav.deals', module: 'sales_pipeline' },
  { kind: 'task', label: 'nav.tasks', module: 'sales_pipeline' },
] as const satisfies readonly { kind: ViewedKind; label: TextKey; module?: ModuleId }[];

const READ = 'plugin::content-manager.explorer.read';

/** The first view of a list of the plugin's own; a type of the site's has other fields. */
const searchIn = (uid: string): string => {
  const kind = viewedKind(uid);
  const [first] = kind ? viewsOf(kind, { now: new Date() }) : [];
  return first ? searchOf(first, 'page=1&pageSize=20') : '';
};

/** The lists of records that this user may read, without the bin and what is done. */
export const useRecordLists = (modules: ReadonlySet<string>): RecordList[] => {
  const permissions = useAuth('Switchboard', (state) => state.permissions);
  const types = useRecordTypes();
  return useMemo(() => {
    const readable = new Set(
      permissions.filter(({ action }) => action === READ).map(({ subject }) => subject)
    );
    return LISTS.flatMap((list) => {
      const uid = types.data?.[list.kind];
      if (!uid || !readable.has(uid)) return [];
      if ('module' in list && !modules.has(list.module)) return [];
      const address = `/content-manager/collection-types/${uid}${searchIn(uid)}`;
      return [{ address, label: list.label }];
    });
  }, [permissions, types.data, modules]);
};
