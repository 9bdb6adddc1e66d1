import { Box, Button, EmptyStateLayout } from '@strapi/design-system';
import { ArrowClockwise } from '@strapi/icons';
import { EmptyDocuments, EmptyPermissions } from '@strapi/icons/symbols';
import { Page } from '@strapi/strapi/admin';
import type { ReactNode } from 'react';
import { statusOf } from '../utils/errors';
import { type TextKey, useText } from '../utils/text';

interface LoadedProps<T> {
  query: { data?: T; error?: unknown; isLoading?: boolean; refetch(): unknown };
  children(data: T): ReactNode;
}

/**
 * What a query gave: a loader, why there is nothing with a way to try again, or the content. Data
 * that is there stays on the screen while it is asked for again, also when that fails.
 */
export const Loaded = <T,>({ query, children }: LoadedProps<T>) => {
  const text = useText();
  const status = statusOf(query.error);
  if (query.data !== undefined && status !== 404) return <>{children(query.data)}</>;
  if (!query.error) return <Page.Loading />;
  if (status === 403) return <Page.NoPermissions />;
  return (
    <Box padding={6} role="alert">
      <EmptyStateLayout
        icon={<EmptyPermissions width="16rem" />}
        content={(query.error as { message?: string }).message ?? text('error.load')}
        action={
          <Button
            variant="secondary"
            startIcon={<ArrowClockwise />}
            onClick={() => void query.refetch()}
          >
            {text('action.again')}
          </Button>
        }
      />
    </Box>
  );
};

const NothingHere = ({ reason }: { reason: TextKey }) => {
  const text = useText();
  return (
    <Page.Main>
      <Box padding={6}>
        <EmptyStateLayout icon={<EmptyDocuments width="16rem" />} content={text(reason)} />
      </Box>
    </Page.Main>
  );
};

/** What stands at the address of a page whose module is off. */
export const ModuleOff = () => <NothingHere reason="modules.webhooksOff" />;

/** What stands at the address of a page about a part of the plugin that the site does without. */
export const FeatureOff = () => <NothingHere reason="feature.off" />;
