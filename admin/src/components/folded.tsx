import type { ReactNode } from 'react';
import { styled } from 'styled-components';

const Details = styled.details`
  summary {
    cursor: pointer;
    padding: ${({ theme }) => theme.spaces[1]} 0;
    font-size: ${({ theme }) => theme.fontSizes[2]};
    font-weight: 600;
    color: ${({ theme }) => theme.colors.primary700};
  }

  &[open] summary {
    margin-bottom: ${({ theme }) => theme.spaces[3]};
  }
`;

/** Rarely needed content, folded behind a label. */
export const Folded = ({ label, children }: { label: string; children: ReactNode }) => (
  <Details>
    <summary>{label}</summary>
    {children}
  </Details>
);
