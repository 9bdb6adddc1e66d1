import { Layouts, Page, SubNav } from '@strapi/strapi/admin';
import { lazy, Suspense } from 'react';
import { Navigate, Route, Routes } from 'react-router-dom';
import { NAVIGATION, type NavigationEntry } from '../navigation';
import { type Access, useAccess } from '../permissions';
import { useModules } from '../services/settings';
import { useText } from '../utils/text';

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

const isOpen = (entry: NavigationEntry, access: Access, enabled: ReadonlySet<string>): boolean =>
  access.can(entry.action) && (entry.module === undefined || enabled.has(entry.module));

/** The menu entry CRM: its side navigation and its pages. */
export const App = () => {
  const text = useText();
  const access = useAccess();
  const modules = useModules();
  if (access.isLoading || modules.isLoading) return <Page.Loading />;
  const enabled = new Set((modules.data ?? []).filter((one) => one.enabled).map(({ id }) => id));
  const groups = NAVIGATION.map(({ label, entries }) => ({
    label,
    entries: entries.filter((entry) => isOpen(entry, access, enabled)),
  })).filter(({ entries }) => entries.length > 0);
  const first = groups[0]?.entries[0];
  if (!first) return <Page.NoPermissions />;

  const sideNav = (
    <SubNav.Main aria-label={text('nav.crm')}>
      <SubNav.Header label={text('nav.crm')} />
      <SubNav.Content>
        <SubNav.Sections>
          {groups.map((group) => (
            <SubNav.Section key={group.label} label={text(group.label)}>
              {group.entries.map(({ path, label }) => (
                <SubNav.Link key={path} to={`/plugins/switchboard/${path}`} label={text(label)} />
              ))}
            </SubNav.Section>
          ))}
        </SubNav.Sections>
      </SubNav.Content>
    </SubNav.Main>
  );

  return (
    <Layouts.Root sideNav={sideNav}>
      <Suspense fallback={<Page.Loading />}>
        <Routes>
          <Route index element={<Navigate to={first.path} replace />} />
          <Route path="webhooks" element={<WebhookListPage />} />
          <Route path="webhooks/create" element={<WebhookCreatePage />} />
          <Route path="webhooks/:id" element={<WebhookPage />} />
          <Route path="connections" element={<ConnectionListPage />} />
          <Route path="connections/create" element={<ConnectionCreatePage />} />
          <Route path="connections/:id" element={<ConnectionPage />} />
          <Route path="events" element={<EventListPage />} />
          <Route path="events/:id" element={<EventPage />} />
          <Route path="stock" element={<StockPage />} />
          <Route path="stock/levels/:id" element={<LevelPage />} />
          <Route path="*" element={<Page.Error />} />
        </Routes>
      </Suspense>
    </Layouts.Root>
  );
};
