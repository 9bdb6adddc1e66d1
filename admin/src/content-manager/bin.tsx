import { Button, Flex, Typography } from '@strapi/design-system';
import { ArrowsCounterClockwise, Archive } from '@strapi/icons';
import { useDocumentRBAC, useForm, useTable } from '@strapi/strapi/admin';
import { Time } from '../components/time';
import type { EditView } from '../panels/edit-view';
import { useSetBin } from '../services/bin';
import { useOutcome } from '../utils/errors';
import { useText } from '../utils/text';
import { viewedKind } from './views';

/** The content manager's props for an action on the rows that are selected. */
interface Selection {
  model: string;
  documents: { documentId: string; trashed_at?: string | null }[];
}

const FIELD = 'trashed_at';

const useMayMove = (): boolean =>
  useDocumentRBAC(
    'Switchboard',
    ({ canUpdate, canUpdateFields }) => canUpdate === true && canUpdateFields.includes(FIELD)
  );

/** True while an entry's form has edits, which a change of the entry would undo. */
const useIsEdited = (): boolean => useForm('Switchboard', ({ modified }) => modified);

const useMove = () => {
  const [setBin, { isLoading }] = useSetBin();
  const outcome = useOutcome();
  const move = async (model: string, ids: readonly string[], inBin: boolean): Promise<void> => {
    outcome(await setBin({ model, ids, inBin }), inBin ? 'bin.moved' : 'bin.restored');
  };
  return { move, isLoading };
};

/** Moves an entry to the bin, or restores it: in the menus of its page and of its row. */
export const BinAction = ({ model, documentId, document }: EditView) => {
  const text = useText();
  const mayMove = useMayMove();
  const isEdited = useIsEdited();
  const { move, isLoading } = useMove();
  if (!mayMove || !viewedKind(model) || !documentId || !document) return null;
  const inBin = Boolean(document[FIELD]);
  return {
    label: text(inBin ? 'bin.restore' : 'bin.move'),
    icon: inBin ? <ArrowsCounterClockwise /> : <Archive />,
    position: ['header', 'table-row'],
    disabled: isLoading || isEdited,
    onClick: () => move(model, [documentId], !inBin),
  };
};

const useBulk = ({ model, documents }: Selection, inBin: boolean) => {
  const mayMove = useMayMove();
  const { move, isLoading } = useMove();
  const selectRow = useTable('Switchboard', (state) => state.selectRow);
  const ids = documents
    .filter((one) => Boolean(one[FIELD]) !== inBin)
    .map(({ documentId }) => documentId);
  if (!mayMove || !viewedKind(model) || ids.length === 0) return null;
  return {
    variant: 'tertiary',
    loading: isLoading,
    async onClick() {
      await move(model, ids, inBin);
      selectRow([]);
    },
  };
};

export const BulkMove = (selection: Selection) => {
  const text = useText();
  const action = useBulk(selection, true);
  return action && { ...action, label: text('bin.move') };
};

export const BulkRestore = (selection: Selection) => {
  const text = useText();
  const action = useBulk(selection, false);
  return action && { ...action, label: text('bin.restore') };
};

const InBin = ({
  model,
  documentId,
  since,
}: {
  model: string;
  documentId: string;
  since: string;
}) => {
  const text = useText();
  const mayMove = useMayMove();
  const isEdited = useIsEdited();
  const { move, isLoading } = useMove();
  return (
    <Flex direction="column" alignItems="stretch" gap={3} width="100%">
      <Typography>
        {text('bin.since')} <Time at={since} />
      </Typography>
      {mayMove ? (
        <Button
          variant="secondary"
          loading={isLoading}
          disabled={isEdited}
          onClick={() => move(model, [documentId], false)}
        >
          {text('bin.restore')}
        </Button>
      ) : null}
    </Flex>
  );
};

/** Says that an entry is in the bin, and restores it. For all others, nothing. */
export const BinPanel = ({ model, documentId, document }: EditView) => {
  const text = useText();
  const since = document?.[FIELD];
  if (!viewedKind(model) || !documentId || !since) return null;
  return {
    title: text('views.bin'),
    content: <InBin model={model} documentId={documentId} since={since} />,
  };
};
