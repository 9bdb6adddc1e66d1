import { Widget } from '@strapi/strapi/admin';
import { type ComponentType, lazy, Suspense } from 'react';

/** A part of the panel with its texts, as `lazy` and the host's routes take it. */
export const loadPage = async <Props extends object>(
  loading: Promise<{ default: ComponentType<Props> }>
) => {
  const { withTexts } = await import('../components/with-texts');
  return { default: withTexts((await loading).default) };
};

/**
 * A widget that is loaded once it is shown. The host asks also for those that a user may not see, and then drops them;
 * it gets a component that has loaded nothing yet.
 */
export const widgetOf = (load: () => Promise<{ default: ComponentType }>) => {
  const Part = lazy(() => loadPage(load()));
  const LoadedWidget = () => (
    <Suspense fallback={<Widget.Loading />}>
      <Part />
    </Suspense>
  );
  return () => Promise.resolve(LoadedWidget);
};
