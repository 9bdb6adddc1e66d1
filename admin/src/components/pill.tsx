import { Badge } from '@strapi/design-system';
import { styled } from 'styled-components';

export type PillColor = 'danger' | 'neutral' | 'primary' | 'secondary' | 'success' | 'warning';

/** Shades of one colour that are far enough apart to be read; the host's orange has none. */
const textOf = (variant: PillColor): string =>
  variant === 'neutral' || variant === 'warning' ? 'neutral800' : `${variant}700`;

/** On one line, also in a cell whose text may take two. */
const OneLine = styled(Badge)`
  && * {
    white-space: nowrap;
  }
`;

/** A badge in the palest and a dark shade of a colour: the host's own pairs are too close to read. */
export const Pill = ({
  variant = 'neutral',
  children,
}: {
  variant?: PillColor;
  children: string;
}) => (
  <OneLine
    backgroundColor={variant === 'neutral' ? 'neutral150' : `${variant}100`}
    textColor={textOf(variant)}
  >
    {children}
  </OneLine>
);
