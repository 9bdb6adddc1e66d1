import { Layouts, Page } from '@strapi/strapi/admin';
import { lazy, type ReactElement, Suspense, useMemo } from 'react';
import { Navigate, Route, Routes, useLocation } from 'react-router-dom';
import type { FeatureId } from '../../../shared/contracts/features';
import type { ModuleId } from '../../../shared/contracts/modules';
import type { AdminAction } from '../../../shared/contracts/permissions';
import { FeatureOff, ModuleOff, NoSuchPage } from '../components/page-states';
import { SideNavigation, TopNavigation } from '../components/navigation';
import { useRecordLists } from '../components/record-lists';
import { openGroups } from '../navigation';
import { AccessContext, permissionsFor, useGrants } from '../permissions';
import { useModules } from '../services/settings';

const OverviewPage = lazy(() => import('./overview/overview-page'));
const DeliveriesPage = lazy(() => import('./deliveries/log-page'));
const WebhookListPage = lazy(() => import('./webhooks/list-page'));
const WebhookCreatePage = lazy(() => import('./webhooks/create-page'));
const WebhookPage = lazy(() => import('./webhooks/webhook-page'));
const ConnectionListPage = lazy(() => import('./connections/list-page'));
const ConnectionCreatePage = lazy(() => import('./connections/create-page'));
const ConnectionPage = lazy(() => import('./connections/connection-page'));
const DaysPage = lazy(() => import('./days/days-page'));
const EventListPage = lazy(() => import('./events/list-page'));
const EventPage = lazy(() => import('./events/event-page'));
const MappingPage = lazy(() => import('./mapping/mapping-page'));
const StockPage = lazy(() => import('./stock/stock-page'));
const ItemPage = lazy(() => import('./stock/item-page'));
const CountPage = lazy(() => import('./stock/count-page'));
const CheckPage = lazy(() => import('./stock/check-page'));
const TransferPage = lazy(() => import('./stock/transfer-page'));
const ImportPage = lazy(() => import('./imports/import-page'));
const LevelPage = lazy(() => import('./stock/level-page'));

interface PageRoute {
  path: string;
  page: ReactElement;
  /** Any of these opens it. */
  actions: readonly AdminAction[];
  module?: ModuleId;
  feature?: FeatureId;
}

const ROUTES: readonly PageRoute[] = [
  {
    path: 'overview',
    page: <OverviewPage />,
    actions: ['webhooks.read', 'connections.read', 'pos-events.read'],
  },
  {
    path: 'deliveries',
    page: <DeliveriesPage />,
    actions: ['webhooks.read'],
    module: 'webhooks',
  },
  {
    path: 'webhooks',
    page: <WebhookListPage />,
    actions: ['webhooks.read'],
    module: 'webhooks',
  },
  {
    path: 'webhooks/create',
    page: <WebhookCreatePage />,
    actions: ['webhooks.create'],
    module: 'webhooks',
  },
  {
    path: 'webhooks/:id',
    page: <WebhookPage />,
    actions: ['webhooks.read'],
    module: 'webhooks',
  },
  {
    path: 'tills',
    page: <ConnectionListPage />,
    actions: ['connections.read'],
    feature: 'pos',
  },
  {
    path: 'tills/create',
    page: <ConnectionCreatePage />,
    actions: ['connections.manage'],
    feature: 'pos',
  },
  {
    path: 'tills/:id',
    page: <ConnectionPage />,
    actions: ['connections.read'],
    feature: 'pos',
  },
  { path: 'sales', page: <DaysPage />, actions: ['sales.read'], feature: 'pos' },
  { path: 'records', page: <EventListPage />, actions: ['pos-events.read'], feature: 'pos' },
  { path: 'records/:id', page: <EventPage />, actions: ['pos-events.read'], feature: 'pos' },
  { path: 'unmapped', page: <MappingPage />, actions: ['mapping.manage'], feature: 'pos' },
  { path: 'stock', page: <StockPage />, actions: ['stock.read'], feature: 'pos' },
  { path: 'stock/items/:id', page: <ItemPage />, actions: ['stock.read'], feature: 'pos' },
  { path: 'stock/count', page: <CountPage />, actions: ['stock.manage'], feature: 'pos' },
  { path: 'stock/check', page: <CheckPage />, actions: ['stock.manage'], feature: 'pos' },
  { path: 'stock/transfers', page: <TransferPage />, actions: ['stock.read'], feature: 'pos' },
  { path: 'import', page: <ImportPage />, actions: ['crm.import', 'stock.import'] },
  { path: 'stock/levels/:id', page: <LevelPage />, actions: ['stock.read'], feature: 'pos' },
];

/** Pages whose address was another one. */
const MOVED = {
  connections: 'tills',
  days: 'sales',
  events: 'records',
  mapping: 'unmapped',
  imports: 'import',
} as const;

const Moved = ({ from }: { from: keyof typeof MOVED }) => {
  const { pathname, search } = useLocation();
  const to = pathname.replace(`/switchboard/${from}`, `/switchboard/${MOVED[from]}`);
  return <Navigate to={{ pathname: to, search }} replace />;
};

/** The plugin's menu entry: its navigation and its pages, each behind its own permission. */
export const App = () => {
  const access = useGrants();
  const modules = useModules();
  const { data: switches, features = { crm: true, pos: true } } = modules.data ?? {};
  const enabled = useMemo(
    () => new Set<string>((switches ?? []).filter((one) => one.enabled).map(({ id }) => id)),
    [switches]
  );
  const records = useRecordLists(enabled);
  if (access.isLoading || modules.isLoading) return <Page.Loading />;
  const groups = openGroups(access.can, enabled, features);
  const first = groups[0]?.entries[0];
  if (!first) return access.can('webhooks.read') ? <ModuleOff /> : <Page.NoPermissions />;

  return (
    <AccessContext.Provider value={access}>
      <Layouts.Root sideNav={<SideNavigation groups={groups} records={records} />}>
        <TopNavigation groups={groups} records={records} />
        <Suspense fallback={<Page.Loading />}>
          <Routes>
            <Route index element={<Navigate to={first.path} replace />} />
            {ROUTES.map(({ path, page, actions, module, feature }) => (
              <Route
                key={path}
                path={path}
                element={
                  feature !== undefined && !features[feature] ? (
                    <FeatureOff />
                  ) : (
                    <Page.Protect permissions={permissionsFor(...actions)}>
                      {module === undefined || enabled.has(module) ? page : <ModuleOff />}
                    </Page.Protect>
                  )
                }
              />
            ))}
            {(Object.keys(MOVED) as (keyof typeof MOVED)[]).map((from) => (
              <Route key={from} path={`${from}/*`} element={<Moved from={from} />} />
            ))}
            <Route path="*" element={<NoSuchPage />} />
          </Routes>
        </Suspense>
      </Layouts.Root>
    </AccessContext.Provider>
  );
};
