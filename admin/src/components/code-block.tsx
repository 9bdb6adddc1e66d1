import { Box, Flex, Typography } from '@strapi/design-system';
import { styled } from 'styled-components';
import { CopyButton } from './copy-button';

const Pre = styled(Box)`
  margin: 0;
  max-height: 36rem;
  overflow: auto;
  white-space: pre-wrap;
  overflow-wrap: anywhere;
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  font-size: 1.3rem;
  line-height: 1.5;

  &:focus-visible {
    outline: 2px solid ${({ theme }) => theme.colors.primary600};
    outline-offset: 2px;
  }
`;

/** JSON as a person reads it; anything else as it is. */
export const prettyJson = (text: string): string => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
};

interface CodeBlockProps {
  title: string;
  code: string;
  copyLabel: string;
  /** Copied instead of what is shown: the exact bytes of a body that is shown indented. */
  copied?: string;
}

export const CodeBlock = ({ title, code, copyLabel, copied }: CodeBlockProps) => (
  <Flex direction="column" alignItems="stretch" gap={1} width="100%">
    <Flex justifyContent="space-between">
      <Typography variant="sigma" textColor="neutral600" tag="h4">
        {title}
      </Typography>
      <CopyButton value={copied ?? code} label={copyLabel} />
    </Flex>
    <Pre
      tag="pre"
      tabIndex={0}
      role="group"
      aria-label={title}
      background="neutral100"
      borderColor="neutral200"
      hasRadius
      padding={3}
      color="neutral800"
    >
      {code}
    </Pre>
  </Flex>
);
