import { ChartCircle, Store, WarningCircle, Webhooks } from '@strapi/icons';
import type { StrapiApp } from '@strapi/strapi/admin';
import { NAVIGATION } from './navigation';
import { PurchasesPanel } from './panels/purchases-panel';
import { RecordPanel } from './panels/record-panel';
import { permissionsFor } from './permissions';
import { PLUGIN_ID } from './pluginId';
import { learnEnglish } from './utils/english';
import { message } from './utils/text';

/** As the host's menu wants it: any of these opens the entry. */
const anyOf = (...actions: Parameters<typeof permissionsFor>) =>
  permissionsFor(...actions) as never[];

const prefixed = (texts: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(texts).map(([key, text]) => [`${PLUGIN_ID}.${key}`, text]));

/** Texts about tills and stock have a file of their own, so that no file gets large. */
const textsIn = async (locale: string): Promise<Record<string, string>> => {
  const [screens, tills] = (await Promise.all([
    import(`./translations/${locale}.json`),
    import(`./translations/tills/${locale}.json`),
  ])) as { default: Record<string, string> }[];
  return { ...screens!.default, ...tills!.default };
};

export default {
  register(app: StrapiApp): void {
    app.addMenuLink({
      to: `plugins/${PLUGIN_ID}`,
      icon: Webhooks,
      intlLabel: message('nav.plugin'),
      Component: () => import('./pages/app').then(({ App }) => ({ default: App })),
      permissions: anyOf(
        ...NAVIGATION.flatMap(({ entries }) => entries.flatMap(({ actions }) => actions))
      ),
      position: 3,
    });
    app.addSettingsLink({ id: PLUGIN_ID, intlLabel: message('nav.plugin') }, [
      {
        id: `${PLUGIN_ID}-modules`,
        to: `${PLUGIN_ID}/modules`,
        intlLabel: message('settings.modules'),
        permissions: anyOf('modules.update'),
        Component: () => import('./pages/settings/modules-page'),
      },
      {
        id: `${PLUGIN_ID}-passwords`,
        to: `${PLUGIN_ID}/application-passwords`,
        intlLabel: message('settings.passwords'),
        permissions: anyOf('application-passwords.manage'),
        Component: () => import('./pages/settings/passwords-page'),
      },
      {
        id: `${PLUGIN_ID}-mappings`,
        to: `${PLUGIN_ID}/mapped-types`,
        intlLabel: message('settings.mappings'),
        permissions: anyOf('modules.update'),
        Component: () => import('./pages/settings/mappings-page'),
      },
    ]);
    app.widgets.register([
      {
        id: 'needs',
        pluginId: PLUGIN_ID,
        icon: WarningCircle,
        title: message('needs.title'),
        link: { label: message('widget.needs.link'), href: `/plugins/${PLUGIN_ID}/overview` },
        permissions: permissionsFor('webhooks.read', 'connections.read', 'pos-events.read'),
        component: () => import('./widgets/needs-widget').then(({ NeedsWidget }) => NeedsWidget),
      },
      {
        id: 'deliveries',
        pluginId: PLUGIN_ID,
        icon: ChartCircle,
        title: message('widget.deliveries.title'),
        link: { label: message('widget.deliveries.link'), href: `/plugins/${PLUGIN_ID}/webhooks` },
        permissions: permissionsFor('webhooks.read'),
        component: () =>
          import('./widgets/deliveries-widget').then(({ DeliveriesWidget }) => DeliveriesWidget),
      },
      {
        id: 'tills',
        pluginId: PLUGIN_ID,
        icon: Store,
        title: message('widget.tills.title'),
        link: { label: message('widget.tills.link'), href: `/plugins/${PLUGIN_ID}/connections` },
        permissions: permissionsFor('connections.read'),
        component: () => import('./widgets/tills-widget').then(({ TillsWidget }) => TillsWidget),
      },
    ]);
    app.registerPlugin({
      id: PLUGIN_ID,
      name: 'Switchboard',
      // A place for the site's own content; docs/plugin-developers.md#on-the-overview-page.
      injectionZones: { overview: { top: [] } },
    });
  },

  bootstrap(app: StrapiApp): void {
    // Typed by the content manager, which a site may lack.
    const contentManager = app.getPlugin('content-manager')?.apis as
      { addEditViewSidePanel?(panels: (typeof RecordPanel)[]): void } | undefined;
    contentManager?.addEditViewSidePanel?.([PurchasesPanel, RecordPanel]);
  },

  async registerTrads({ locales }: { locales: string[] }) {
    learnEnglish(await textsIn('en'));
    return Promise.all(
      locales.map(async (locale) => {
        try {
          return { locale, data: prefixed(await textsIn(locale)) };
        } catch {
          // No translation into this language: the English texts stand in.
          return { locale, data: {} };
        }
      })
    );
  },
};
