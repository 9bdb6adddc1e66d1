import { TextInput } from '@strapi/design-system';
import { styled } from 'styled-components';

const isDark = (color: string): boolean => /^#[0-7]/.test(color);

/** A field for a day or a time, whose picker the browser draws: it is told how dark the theme is. */
export const TimeInput = styled(TextInput)`
  color-scheme: ${({ theme }) => (isDark(theme.colors.neutral0) ? 'dark' : 'light')};
`;
