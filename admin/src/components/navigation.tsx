import { Box, Flex } from '@strapi/design-system';
import { SubNav } from '@strapi/strapi/admin';
import { NavLink } from 'react-router-dom';
import { styled } from 'styled-components';
import type { NavigationGroup } from '../navigation';
import { type TextKey, useText } from '../utils/text';
import type { RecordList } from './record-lists';

interface NavigationProps {
  groups: readonly NavigationGroup[];
  records: readonly RecordList[];
}

interface Section {
  label: TextKey;
  links: readonly RecordList[];
}

/** The overview, then the records that everything is about, then the rest. */
const sectionsOf = ({ groups, records }: NavigationProps): Section[] => {
  const sections: Section[] = groups.map(({ label, entries }) => ({
    label,
    links: entries.map((entry) => ({
      label: entry.label,
      address: `/plugins/switchboard/${entry.path}`,
    })),
  }));
  const lists: Section = { label: 'nav.records', links: records };
  const before = sections.findIndex(({ label }) => label !== 'nav.start');
  return records.length > 0 ? sections.toSpliced(Math.max(0, before), 0, lists) : sections;
};

/** The host's navigation next to a page. The host hides it where the screen is narrow. */
export const SideNavigation = (props: NavigationProps) => {
  const text = useText();
  return (
    <SubNav.Main aria-label={text('nav.plugin')}>
      <SubNav.Header label={text('nav.plugin')} />
      <SubNav.Content>
        <SubNav.Sections>
          {sectionsOf(props).map(({ label, links }) => (
            <SubNav.Section key={label} label={text(label)}>
              {links.map((link) => (
                <SubNav.Link key={link.address} to={link.address} label={text(link.label)} />
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
export const TopNavigation = (props: NavigationProps) => {
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
        {sectionsOf(props).flatMap(({ links }) =>
          links.map(({ address, label }) => (
            <li key={address}>
              <Entry to={address}>{text(label)}</Entry>
            </li>
          ))
        )}
      </Flex>
    </Box>
  );
};
