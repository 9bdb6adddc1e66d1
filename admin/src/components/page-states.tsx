import { Box, Button, EmptyStateLayout } from '@strapi/design-system';
import { ArrowClockwise } from '@strapi/icons';
import { EmptyPermissions } from '@strapi/icons/symbols';
import { Page } from '@strapi/strapi/admin';
import type { ReactNode } from 'react';
import { statusOf } from '../utils/errors';
import { useText } from '../utils/text';

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
