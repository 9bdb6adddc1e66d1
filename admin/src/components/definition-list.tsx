import { Box, Grid, Typography } from '@strapi/design-system';
import { Fragment, type ReactNode } from 'react';
import { styled } from 'styled-components';

const Value = styled(Typography)`
  overflow-wrap: anywhere;
`;

interface DefinitionListProps {
  rows: readonly (readonly [label: string, value: ReactNode])[];
}

/** Facts with their names. */
export const DefinitionList = ({ rows }: DefinitionListProps) => (
  <Grid.Root tag="dl" gap={4} gridCols={12}>
    {rows.map(([label, value]) => (
      <Fragment key={label}>
        <Grid.Item col={3} s={6} xs={12} direction="column" alignItems="start">
          <Typography variant="sigma" textColor="neutral600" tag="dt">
            {label}
          </Typography>
          <Box tag="dd" paddingTop={1} width="100%">
            <Value textColor="neutral800" tag="div">
              {value}
            </Value>
          </Box>
        </Grid.Item>
      </Fragment>
    ))}
  </Grid.Root>
);

/** Headers as they went over the wire, one a line. */
export const headerLines = (headers: Readonly<Record<string, string>>): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');
