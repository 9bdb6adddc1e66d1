import { Typography, type TypographyProps } from '@strapi/design-system';
import type { CSSProperties } from 'react';
import { css, styled } from 'styled-components';

/** Words up to this length stay whole, however narrow their column is. */
const WORD = 20;

/** Lets a longer word break, and its column get narrower than the word. */
export const breakingOf = (text: string): CSSProperties | undefined =>
  text.split(/\s/).some(({ length }) => length > WORD)
    ? { overflowWrap: 'anywhere', minWidth: '8rem' }
    : undefined;

export const twoLines = css`
  display: -webkit-box;
  overflow: hidden;
  white-space: normal;
  -webkit-box-orient: vertical;
  -webkit-line-clamp: 2;
`;

const TwoLines = styled(Typography)`
  ${twoLines}
`;

/** A text that is cut off after two lines; its title has all of it. */
export const Cut = ({ children, ...props }: TypographyProps<'div'> & { children: string }) => (
  <TwoLines {...props} tag="div" title={children} style={breakingOf(children)}>
    {children}
  </TwoLines>
);
