import { Layouts, Page } from '@strapi/strapi/admin';
import { lazy, type ReactElement, Suspense } from 'react';
import { Navigate, Route, Routes } from 'react-router-dom';
import type { FeatureId } from '../../../shared/contracts/features';
import type { ModuleId } from '../../../shared/contracts/modules';
import type { AdminAction } from '../../../shared/contracts/permissions';
import { FeatureOff, ModuleOff } from '../components/page-states';
import { SideNavigation, TopNavigation } from '../components/navigation';
import { openGroups } from '../navigation';
import { AccessContext, permissionsFor, useGrants } from '../permissions';
import { useModules } from '../services/settings';

const WebhookListPage = lazy(() => import('./webhooks/list-page'));
const WebhookCreatePage = lazy(() => import('./webhooks/create-page'));
const WebhookPage = lazy(() => import('./webhooks/webhook-page'));
const ConnectionListPage = lazy(() => import('./connections/list-page'));
const ConnectionCreatePage = lazy(() => import('./connections/create-page'));
const ConnectionPage = lazy(() => import('./connections/connection-page'));
const EventListPage = lazy(() => import('./events/list-page'));
const EventPage = lazy(() => import('./events/event-page'));
const StockPage = lazy(() => import('./stock/stock-page'));
const LevelPage = lazy(() => import('./stock/level-page'));

interface PageRoute {
  path: string;
  page: ReactElement;
  action: AdminAction;
  module?: ModuleId;
  feature?: FeatureId;
}

const ROUTES: readonly PageRoute[] = [
  {
    path: 'webhooks',
    page: <WebhookListPage />,
    action: 'webhooks.read',
    module: 'webhooks',
  },
  {
    path: 'webhooks/create',
    page: <WebhookCreatePage />,
    action: 'webhooks.create',
    module: 'webhooks',
  },
  {
    path: 'webhooks/:id',
    page: <WebhookPage />,
    action: 'webhooks.read',
    module: 'webhooks',
  },
  { path: 'connections', page: <ConnectionListPage />, action: 'connections.read', feature: 'pos' },
  {
    path: 'connections/create',
    page: <ConnectionCreatePage />,
    action: 'connections.manage',
    feature: 'pos',
  },
  { path: 'connections/:id', page: <ConnectionPage />, action: 'connections.read', feature: 'pos' },
  { path: 'events', page: <EventListPage />, action: 'pos-events.read', feature: 'pos' },
  { path: 'events/:id', page: <EventPage />, action: 'pos-events.read', feature: 'pos' },
  { path: 'stock', page: <StockPage />, action: 'stock.read', feature: 'pos' },
  { path: 'stock/levels/:id', page: <LevelPage />, action: 'stock.read', feature: 'pos' },
];

/** The menu entry CRM: its navigation and its pages, each behind its own permission. */
export const App = () => {
  const access = useGrants();
  const modules = useModules();
  if (access.isLoading || modules.isLoading) return <Page.Loading />;
  const { data: switches = [], features = { crm: true, pos: true } } = modules.data ?? {};
  const enabled = new Set(switches.filter((one) => one.enabled).map(({ id }) => id));
  const groups = openGroups(access.can, enabled, features);
  const first = groups[0]?.entries[0];
  if (!first) return access.can('webhooks.read') ? <ModuleOff /> : <Page.NoPermissions />;

  return (
    <AccessContext.Provider value={access}>
      <Layouts.Root sideNav={<SideNavigation groups={groups} />}>
        <TopNavigation groups={groups} />
        <Suspense fallback={<Page.Loading />}>
          <Routes>
            <Route index element={<Navigate to={first.path} replace />} />
            {ROUTES.map(({ path, page, action, module, feature }) => (
              <Route
                key={path}
                path={path}
                element={
                  feature !== undefined && !features[feature] ? (
                    <FeatureOff />
                  ) : (
                    <Page.Protect permissions={permissionsFor(action)}>
                      {module === undefined || enabled.has(module) ? page : <ModuleOff />}
                    </Page.Protect>
                  )
                }
              />
            ))}
            <Route path="*" element={<Page.Error />} />
          </Routes>
        </Suspense>
      </Layouts.Root>
    </AccessContext.Provider>
  );
};
