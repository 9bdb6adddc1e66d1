import { Link as DesignLink } from '@strapi/design-system';
import type { ReactNode } from 'react';
import { Link, type To } from 'react-router-dom';

interface RowLinkProps {
  to: To;
  id?: string;
  /** Said instead of what is shown, where that is a bare number. */
  label?: string;
  children: ReactNode;
}

/** The link that a row is, for those without a mouse. */
export const RowLink = ({ to, id, label, children }: RowLinkProps) => (
  <DesignLink
    tag={Link}
    to={to}
    id={id}
    aria-label={label}
    onClick={(event: { stopPropagation(): void }) => event.stopPropagation()}
  >
    {children}
  </DesignLink>
);
