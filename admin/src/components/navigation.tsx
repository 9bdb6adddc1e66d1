import { Box, Flex } from '@strapi/design-system';
import { SubNav } from '@strapi/strapi/admin';
import { NavLink } from 'react-router-dom';
import { styled } from 'styled-components';
import type { NavigationGroup } from '../navigation';
import { useText } from '../utils/text';

interface NavigationProps {
  groups: readonly NavigationGroup[];
}

const address = (path: string): string => `/plugins/switchboard/${path}`;

/** The host's navigation next to a page. The host hides it where the screen is narrow. */
export const SideNavigation = ({ groups }: NavigationProps) => {
  const text = useText();
  return (
    <SubNav.Main aria-label={text('nav.plugin')}>
      <SubNav.Header label={text('nav.plugin')} />
      <SubNav.Content>
        <SubNav.Sections>
          {groups.map(({ label, entries }) => (
            <SubNav.Section key={label} label={text(label)}>
              {entries.map((entry) => (
                <SubNav.Link key={entry.path} to={address(entry.path)} label={text(entry.label)} />
              ))}
            </SubNav.Section>
          ))}
        </SubNav.Sections>
      </SubNav.Content>
    </SubNav.Main>
  );
};

const Entry = styled(NavLink)`
  display: block;
  padding: ${({ theme }) => `${theme.spaces[2]} ${theme.spaces[3]}`};
  border-radius: ${({ theme }) => theme.borderRadius};
  font-size: ${({ theme }) => theme.fontSizes[2]};
  text-decoration: none;
  color: ${({ theme }) => theme.colors.neutral800};

  &.active {
    background: ${({ theme }) => theme.colors.primary100};
    color: ${({ theme }) => theme.colors.primary700};
    font-weight: 600;
  }
`;

/** The entries of the navigation above a page, on screens too narrow to have it at the side. */
export const TopNavigation = ({ groups }: NavigationProps) => {
  const text = useText();
  return (
    <Box
      tag="nav"
      aria-label={text('nav.plugin')}
      display={{ initial: 'block', medium: 'none' }}
      background="neutral0"
      borderColor="neutral150"
      borderStyle="solid"
      borderWidth="0 0 1px 0"
      padding={2}
    >
      <Flex tag="ul" gap={1} wrap="wrap">
        {groups.flatMap(({ entries }) =>
          entries.map(({ path, label }) => (
            <li key={path}>
              <Entry to={address(path)}>{text(label)}</Entry>
            </li>
          ))
        )}
      </Flex>
    </Box>
  );
};
