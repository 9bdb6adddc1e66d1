import { Box, Flex, Typography } from '@strapi/design-system';
import type { ReactNode } from 'react';

interface PanelProps {
  title?: string;
  actions?: ReactNode;
  children: ReactNode;
}

/** A white card with a heading, the host's way to group what belongs together. */
export const Panel = ({ title, actions, children }: PanelProps) => (
  <Box
    tag="section"
    aria-label={title}
    background="neutral0"
    hasRadius
    shadow="filterShadow"
    padding={6}
    width="100%"
  >
    <Flex direction="column" alignItems="stretch" gap={4}>
      {title && (
        <Flex justifyContent="space-between" wrap="wrap" gap={2}>
          <Typography variant="delta" tag="h2">
            {title}
          </Typography>
          {actions && <Flex gap={2}>{actions}</Flex>}
        </Flex>
      )}
      {children}
    </Flex>
  </Box>
);
