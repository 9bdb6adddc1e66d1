import { Box } from '@strapi/design-system';
import { Widget } from '@strapi/strapi/admin';
import { NeedList } from '../pages/overview/need-list';
import { useNeeds } from '../pages/overview/use-needs';
import { AccessContext, useGrants } from '../permissions';

const SHOWN = 8;

const Content = () => {
  const { isLoading, isUnknown, isPartial, needs, more } = useNeeds();
  if (isLoading) return <Widget.Loading />;
  if (isUnknown && needs.length === 0) return <Widget.Error />;
  return (
    <Box padding={4}>
      <NeedList needs={needs} well="needs.none" most={SHOWN} isPartial={isPartial} beyond={more} />
    </Box>
  );
};

/** The current user's open problems, on the home page. */
export const NeedsWidget = () => (
  <AccessContext.Provider value={useGrants()}>
    <Content />
  </AccessContext.Provider>
);
