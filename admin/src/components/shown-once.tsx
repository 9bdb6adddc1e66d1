import {
  Box,
  Button,
  Checkbox,
  Field,
  Flex,
  Modal,
  TextInput,
  Typography,
} from '@strapi/design-system';
import { type ReactNode, useEffect, useState } from 'react';
import { useText } from '../utils/text';
import { CopyButton } from './copy-button';

const refuse = (event: Event): void => event.preventDefault();

/** The browser asks before the page goes while something on it will never be shown again. */
const useStay = (): void => {
  useEffect(() => {
    window.addEventListener('beforeunload', refuse);
    return () => window.removeEventListener('beforeunload', refuse);
  }, []);
};

interface ShownOnceProps {
  title: string;
  values: readonly { label: string; value: string }[];
  children?: ReactNode;
  onDone(): void;
}

/** Shows values once: no Escape, outside click or closing button loses them by accident. */
export const ShownOnce = ({ title, values, children, onDone }: ShownOnceProps) => {
  const text = useText();
  const [kept, setKept] = useState(false);
  useStay();
  return (
    <Modal.Root open>
      <Modal.Content
        aria-describedby={undefined}
        onEscapeKeyDown={refuse}
        onPointerDownOutside={refuse}
        onInteractOutside={refuse}
      >
        <Box padding={6} background="neutral100">
          <Modal.Title>{title}</Modal.Title>
        </Box>
        <Modal.Body>
          <Flex direction="column" alignItems="stretch" gap={4}>
            <Typography>{text('once.hint')}</Typography>
            {values.map(({ label, value }) => (
              <Flex key={label} gap={2} alignItems="end">
                <Field.Root name={label} flex="1">
                  <Field.Label>{label}</Field.Label>
                  <TextInput readOnly value={value} onFocus={(event) => event.target.select()} />
                </Field.Root>
                <CopyButton value={value} label={text('once.copy', { label })} wide size="L" />
              </Flex>
            ))}
            {children}
          </Flex>
        </Modal.Body>
        <Modal.Footer>
          <Checkbox checked={kept} onCheckedChange={(checked) => setKept(checked === true)}>
            {text('once.kept')}
          </Checkbox>
          <Button disabled={!kept} onClick={onDone}>
            {text('once.done')}
          </Button>
        </Modal.Footer>
      </Modal.Content>
    </Modal.Root>
  );
};
