import { Box, Button, Flex, Typography } from '@strapi/design-system';
import { Upload } from '@strapi/icons';
import { type DragEvent, useRef, useState } from 'react';
import { useText } from '../../utils/text';

interface FileDropProps {
  name: string | null;
  onFile(file: File): void;
}

/** Takes one file: dropped here, or chosen. */
export const FileDrop = ({ name, onFile }: FileDropProps) => {
  const text = useText();
  const input = useRef<HTMLInputElement>(null);
  const [isOver, setIsOver] = useState(false);
  const take = (files: FileList | null): void => {
    const [file] = files ?? [];
    if (file) onFile(file);
  };
  const over = (is: boolean) => (event: DragEvent) => {
    event.preventDefault();
    setIsOver(is);
  };
  return (
    <Box
      hasRadius
      padding={6}
      background={isOver ? 'primary100' : 'neutral100'}
      borderColor={isOver ? 'primary600' : 'neutral300'}
      borderStyle="dashed"
      borderWidth="1px"
      onDragOver={over(true)}
      onDragLeave={over(false)}
      onDrop={(event: DragEvent) => {
        over(false)(event);
        take(event.dataTransfer.files);
      }}
    >
      <Flex direction="column" gap={3}>
        <Typography textColor="neutral800">{name ?? text('import.drop')}</Typography>
        <Button variant="secondary" startIcon={<Upload />} onClick={() => input.current?.click()}>
          {text(name === null ? 'import.choose' : 'import.chooseOther')}
        </Button>
        <input
          ref={input}
          type="file"
          hidden
          aria-label={text('import.file')}
          accept=".csv,text/csv,text/plain"
          onChange={({ currentTarget }) => {
            take(currentTarget.files);
            // Choosing the file again is a change, too: it may have been corrected.
            currentTarget.value = '';
          }}
        />
      </Flex>
    </Box>
  );
};
