import { Link as DesignLink } from '@strapi/design-system';
import type { ReactNode } from 'react';
import { Link, type To } from 'react-router-dom';

/** The link that a row is, for those without a mouse. */
export const RowLink = ({ to, children }: { to: To; children: ReactNode }) => (
  <DesignLink
    tag={Link}
    to={to}
    onClick={(event: { stopPropagation(): void }) => event.stopPropagation()}
  >
    {children}
  </DesignLink>
);
