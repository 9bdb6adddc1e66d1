import { Badge } from '@strapi/design-system';

export type PillColor = 'danger' | 'neutral' | 'primary' | 'secondary' | 'success' | 'warning';

/** A badge in the palest and a dark shade of a colour: the host's own pairs are too close to read. */
export const Pill = ({
  variant = 'neutral',
  children,
}: {
  variant?: PillColor;
  children: string;
}) => (
  <Badge
    backgroundColor={variant === 'neutral' ? 'neutral150' : `${variant}100`}
    textColor={variant === 'neutral' ? 'neutral800' : `${variant}700`}
  >
    {children}
  </Badge>
);
