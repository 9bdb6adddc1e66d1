import { lazy, Suspense } from 'react';
import { useGrants } from '../permissions';
import { useModules, useRecordTypes } from '../services/settings';
import { loadPage } from '../utils/load-part';
import { useText } from '../utils/text';
import type { EditView } from './edit-view';

const RecordDeliveries = lazy(() => loadPage(import('./record-deliveries')));

/** The latest deliveries about an entry that has events. For others, nothing. */
export const RecordPanel = ({ model, documentId }: EditView) => {
  const text = useText();
  const { can } = useGrants();
  const isReader = can('webhooks.read');
  const types = useRecordTypes(undefined, { skip: !isReader });
  const modules = useModules(undefined, { skip: !isReader });
  const isOn = modules.data?.data.some(({ id, enabled }) => id === 'webhooks' && enabled) ?? false;
  const type = Object.entries(types.data ?? {}).find(([, uid]) => uid === model)?.[0];
  if (!isReader || !isOn || !type || !documentId) return null;
  return {
    title: text('panel.title'),
    content: (
      <Suspense fallback={null}>
        <RecordDeliveries type={type} id={documentId} />
      </Suspense>
    ),
  };
};
