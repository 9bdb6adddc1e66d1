import { useDocumentRBAC } from '@strapi/strapi/admin';
import { lazy, Suspense } from 'react';
import { useParams } from 'react-router-dom';
import { useIsContact } from '../panels/contact-actions';
import { loadPage } from '../utils/load-part';
import { viewedKind } from './views';

const ListViews = lazy(() => loadPage(import('./list-views')));
const ExportButton = lazy(() => loadPage(import('./export-button')));

/** Above the content manager's lists of CRM records: their views, and the export of contacts. */
export const ListTools = () => {
  const { slug = '' } = useParams();
  const kind = viewedKind(slug);
  const isContact = useIsContact(slug);
  const canRead = useDocumentRBAC('Switchboard', ({ canRead: may }) => may);
  return (
    <Suspense fallback={null}>
      {kind && <ListViews key={kind} kind={kind} />}
      {isContact && canRead && <ExportButton />}
    </Suspense>
  );
};
