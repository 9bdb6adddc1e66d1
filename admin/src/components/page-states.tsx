import { Box, Button, EmptyStateLayout } from '@strapi/design-system';
import { ArrowClockwise } from '@strapi/icons';
import { EmptyDocuments, EmptyPermissions } from '@strapi/icons/symbols';
import { Page } from '@strapi/strapi/admin';
import type { ReactNode } from 'react';
import { statusOf } from '../utils/errors';
import { useRefusals } from '../utils/refusals';
import { type TextKey, useText } from '../utils/text';

/** Shown in place of something that does not exist. */
export const NotFound = () => {
  const text = useText();
  return (
    <EmptyStateLayout icon={<EmptyDocuments width="16rem" />} content={text('error.notFound')} />
  );
};

interface LoadedProps<T> {
  query: {
    data?: T;
    /** The answer to the current query; `data` may be that of the previous one. */
    currentData?: T;
    error?: unknown;
    isLoading?: boolean;
    refetch(): unknown;
  };
  children(data: T): ReactNode;
}

/**
 * Draws a query: a loader, the error with a way to try again, or the content. Data that is there stays
 * on the screen while it is asked for again, also when that fails; but what answers another question
 * does not stay beneath one that failed.
 */
export const Loaded = <T,>({ query, children }: LoadedProps<T>) => {
  const text = useText();
  const { whole } = useRefusals();
  const status = statusOf(query.error);
  const isStale = 'currentData' in query && query.currentData === undefined;
  const answersThis = query.data !== undefined && !(query.error && isStale);
  if (answersThis && status !== 404) return <>{children(query.data as T)}</>;
  if (!query.error) return <Page.Loading />;
  if (status === 403) return <Page.NoPermissions />;
  if (status === 404) {
    return (
      <Box padding={6} role="alert">
        <NotFound />
      </Box>
    );
  }
  return (
    <Box padding={6} role="alert">
      <EmptyStateLayout
        icon={<EmptyPermissions width="16rem" />}
        content={whole(query.error)}
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

/** The page of a module that is off. */
export const ModuleOff = () => <NothingHere reason="modules.webhooksOff" />;

/** The page at an address that the plugin does not have. */
export const NoSuchPage = () => <NothingHere reason="error.notFound" />;

/** The page of a part of the plugin that the site does not use. */
export const FeatureOff = () => <NothingHere reason="feature.off" />;
