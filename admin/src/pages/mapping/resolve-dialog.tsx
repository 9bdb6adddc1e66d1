import { Button, Flex, Modal, Typography } from '@strapi/design-system';
import { useState } from 'react';
import type {
  MappingTarget,
  Resolved,
  UnknownValue,
} from '../../../../shared/contracts/pos-mapping';
import { FocusBack } from '../../components/focus-back';
import { usePreviewMapping, useResolve } from '../../services/mapping';
import { type Problems, useOutcome } from '../../utils/errors';
import { useRefusals } from '../../utils/refusals';
import { useText } from '../../utils/text';
import { type Draft, emptyDraft, targetOf } from './draft';
import { TargetFields } from './target-fields';

const inputOf = ({ kind, value, connection }: UnknownValue, to: MappingTarget) => ({
  kind,
  value,
  ...(connection && { connection: connection.id }),
  to,
});

interface ResolveDialogProps {
  unknown: UnknownValue;
  onClose(): void;
  onResolved(resolved: Resolved): void;
}

/** Says what one value means: nothing is chosen, and what it reaches is shown before it is applied. */
export const ResolveDialog = ({ unknown, onClose, onResolved }: ResolveDialogProps) => {
  const text = useText();
  const outcome = useOutcome();
  const { byPath } = useRefusals();
  const [draft, setDraft] = useState<Draft>(() => emptyDraft(unknown));
  const [problems, setProblems] = useState<Problems>({});
  const [reach, setReach] = useState<Resolved | null>(null);
  const [preview, previewing] = usePreviewMapping();
  const [resolve, resolving] = useResolve();
  const to = targetOf(draft);

  const change = (next: Draft): void => {
    setDraft(next);
    setProblems({});
    // The preview belongs to the previous target.
    setReach(null);
  };
  const refused = (error: unknown): void => {
    const found = byPath(error);
    setProblems(found);
    if (Object.keys(found).length === 0) outcome({ error });
  };
  const onPreview = async (): Promise<void> => {
    if (!to) return;
    const { data, error } = await preview(inputOf(unknown, to));
    if (data) setReach(data);
    else refused(error);
  };
  const onApply = async (): Promise<void> => {
    if (!to) return;
    const done = await resolve(inputOf(unknown, to));
    if ('error' in done) {
      setReach(null);
      refused(done.error);
      return;
    }
    onResolved(done.data);
  };

  return (
    <Modal.Root open onOpenChange={(open) => !open && onClose()}>
      <Modal.Content aria-describedby={undefined}>
        <FocusBack />
        <Modal.Header closeLabel={text('action.close')}>
          <Modal.Title>{text('mapping.resolve.title', { value: unknown.value })}</Modal.Title>
        </Modal.Header>
        <Modal.Body>
          <Flex direction="column" alignItems="stretch" gap={4}>
            <TargetFields kind={unknown.kind} draft={draft} problems={problems} onChange={change} />
            <Typography role="status" fontWeight="bold" textColor="neutral800">
              {reach && text('mapping.preview', { records: reach.records, pieces: reach.pieces })}
            </Typography>
          </Flex>
        </Modal.Body>
        <Modal.Footer>
          <Button variant="tertiary" onClick={onClose}>
            {text('action.close')}
          </Button>
          {reach ? (
            <Button loading={resolving.isLoading} onClick={() => void onApply()}>
              {text('action.apply')}
            </Button>
          ) : (
            <Button
              variant="secondary"
              disabled={to === null}
              loading={previewing.isFetching}
              onClick={() => void onPreview()}
            >
              {text('action.preview')}
            </Button>
          )}
        </Modal.Footer>
      </Modal.Content>
    </Modal.Root>
  );
};
