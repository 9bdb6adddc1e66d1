import { lazy, Suspense } from 'react';
import { useGrants } from '../permissions';
import { useRecordTypes } from '../services/settings';
import { loadPage } from '../utils/load-part';
import { useText } from '../utils/text';
import type { EditView } from './edit-view';

const ContactPurchases = lazy(() => loadPage(import('./contact-purchases')));

/** The purchases and refunds of a contact. For other entries, nothing. */
export const PurchasesPanel = ({ model, documentId }: EditView) => {
  const text = useText();
  const { can } = useGrants();
  const isReader = can('crm.read');
  const types = useRecordTypes(undefined, { skip: !isReader });
  if (!isReader || types.data?.contact !== model || !documentId) return null;
  return {
    title: text('purchases.title'),
    content: (
      <Suspense fallback={null}>
        <ContactPurchases id={documentId} />
      </Suspense>
    ),
  };
};
