import { Link as DesignLink } from '@strapi/design-system';
import type { ReactNode } from 'react';
import { Link, type To } from 'react-router-dom';
import { styled } from 'styled-components';
import { breakingOf, twoLines } from './cut';

const Shown = styled(DesignLink)`
  max-width: 100%;

  > span {
    ${twoLines}
  }
`;

interface RowLinkProps {
  to: To;
  id?: string;
  /** Said instead of what is shown, if that is a bare number. */
  label?: string;
  children: ReactNode;
}

/** The link that a row is, for those without a mouse. A long name is cut off; its title has all of it. */
export const RowLink = ({ to, id, label, children }: RowLinkProps) => (
  <Shown
    tag={Link}
    style={typeof children === 'string' ? breakingOf(children) : undefined}
    to={to}
    id={id}
    aria-label={label}
    title={typeof children === 'string' ? children : undefined}
    onClick={(event: { stopPropagation(): void }) => event.stopPropagation()}
  >
    {children}
  </Shown>
);
