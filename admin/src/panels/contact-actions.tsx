import { Download } from '@strapi/icons';
import { useDocumentRBAC, useTable } from '@strapi/strapi/admin';
import { lazy, Suspense, useMemo, useState } from 'react';
import { useGrants } from '../permissions';
import { useContactFile } from '../services/contacts';
import { useRecordTypes } from '../services/settings';
import { download } from '../utils/csv';
import { useOutcome } from '../utils/errors';
import { loadPage } from '../utils/load-part';
import { useText } from '../utils/text';

const MergeDialog = lazy(() => loadPage(import('./merge-dialog')));

/** The content manager's props for an action on chosen entries of a list. */
interface ChosenEntries {
  model: string;
  documents: readonly { documentId: string }[];
}

const CONTACT = 'plugin::switchboard.contact';

/** True for the plugin's contacts, and for the type that the site maps to them; only readers of the CRM ask for it. */
export const useIsContact = (model: string | undefined): boolean => {
  const { can } = useGrants();
  const isOwn = model === CONTACT;
  const types = useRecordTypes(undefined, { skip: isOwn || !can('crm.read') });
  return isOwn || (model !== undefined && types.data?.contact === model);
};

export const useExport = () => {
  const text = useText();
  const fileOf = useContactFile();
  const outcome = useOutcome();
  const [isLoading, setIsLoading] = useState(false);
  const run = async (wanted: Parameters<typeof fileOf>[0]): Promise<void> => {
    setIsLoading(true);
    const file = outcome(await fileOf(wanted), 'contacts.exported');
    setIsLoading(false);
    if (file)
      download(`${text('nav.contacts')} ${new Date().toISOString().slice(0, 10)}.csv`, file);
  };
  return { run, isLoading };
};

export const ExportChosen = ({ model, documents }: ChosenEntries) => {
  const text = useText();
  const isContact = useIsContact(model);
  const canRead = useDocumentRBAC('ExportChosen', ({ canRead: may }) => may);
  const { run, isLoading } = useExport();
  if (!isContact || !canRead) return null;
  return {
    label: text('contacts.export'),
    icon: <Download />,
    variant: 'tertiary' as const,
    loading: isLoading,
    onClick: () => void run({ ids: documents.map(({ documentId }) => documentId).join(',') }),
  };
};

/** Makes one contact of two chosen ones. */
export const MergeChosen = ({ model, documents }: ChosenEntries) => {
  const text = useText();
  const isContact = useIsContact(model);
  const mayMerge = useDocumentRBAC(
    'MergeChosen',
    ({ canUpdate, canDelete }) => canUpdate && canDelete
  );
  const selectRow = useTable('MergeChosen', (state) => state.selectRow);
  const [one, other] = documents.map(({ documentId }) => documentId);
  // One component for one pair, so that what is chosen in the dialog stays.
  const Content = useMemo(
    () =>
      ({ onClose }: { onClose(): void }) =>
        one !== undefined && other !== undefined ? (
          <Suspense fallback={null}>
            <MergeDialog
              model={model}
              ids={[one, other]}
              onClose={onClose}
              onMerged={() => {
                selectRow([]);
                onClose();
              }}
            />
          </Suspense>
        ) : null,
    [model, one, other, selectRow]
  );
  if (!isContact || !mayMerge) return null;
  return {
    label: text('merge.action'),
    variant: 'tertiary' as const,
    disabled: documents.length !== 2,
    dialog: { type: 'modal' as const, title: text('merge.title'), content: Content },
  };
};
