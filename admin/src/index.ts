import { ChartCircle, ManyWays, Store, WarningCircle } from '@strapi/icons';
import type { StrapiApp } from '@strapi/strapi/admin';
import { BinAction, BinPanel, BulkMove, BulkRestore } from './content-manager/bin';
import { ListTools } from './content-manager/list-tools';
import { NAVIGATION } from './navigation';
import { ExportChosen, MergeChosen } from './panels/contact-actions';
import { PurchasesPanel } from './panels/purchases-panel';
import { RecordPanel } from './panels/record-panel';
import { permissionsFor } from './permissions';
import { PLUGIN_ID } from './pluginId';
import de from './translations/menu/de.json';
import en from './translations/menu/en.json';
import fr from './translations/menu/fr.json';
import { loadPage, widgetOf } from './utils/load-part';
import { message } from './utils/text';

/** As the host's menu wants it: any of these opens the entry. */
const anyOf = (...actions: Parameters<typeof permissionsFor>) =>
  permissionsFor(...actions) as never[];

const prefixed = (texts: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(texts).map(([key, text]) => [`${PLUGIN_ID}.${key}`, text]));

/** The few words that the host itself shows, in the script that everybody loads. `withTexts` loads the others. */
const MENU_TEXTS: Readonly<Record<string, Record<string, string>>> = { en, de, fr };

interface ContentManagerApis {
  addEditViewSidePanel?(panels: unknown[]): void;
  addDocumentAction?(actions: unknown[]): void;
  addBulkAction?(actions: unknown[]): void;
}

export default {
  register(app: StrapiApp): void {
    app.addMenuLink({
      to: `plugins/${PLUGIN_ID}`,
      icon: ManyWays,
      intlLabel: message('nav.plugin'),
      Component: () => loadPage(import('./pages/app').then(({ App }) => ({ default: App }))),
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
        Component: () => loadPage(import('./pages/settings/modules-page')),
      },
      {
        id: `${PLUGIN_ID}-passwords`,
        to: `${PLUGIN_ID}/application-passwords`,
        intlLabel: message('settings.passwords'),
        permissions: anyOf('application-passwords.manage'),
        Component: () => loadPage(import('./pages/settings/passwords-page')),
      },
      {
        id: `${PLUGIN_ID}-mappings`,
        to: `${PLUGIN_ID}/mapped-types`,
        intlLabel: message('settings.mappings'),
        permissions: anyOf('modules.update'),
        Component: () => loadPage(import('./pages/settings/mappings-page')),
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
        component: widgetOf(() =>
          import('./widgets/needs-widget').then(({ NeedsWidget }) => ({ default: NeedsWidget }))
        ),
      },
      {
        id: 'deliveries',
        pluginId: PLUGIN_ID,
        icon: ChartCircle,
        title: message('widget.deliveries.title'),
        link: {
          label: message('widget.deliveries.link'),
          href: `/plugins/${PLUGIN_ID}/deliveries`,
        },
        permissions: permissionsFor('webhooks.read'),
        component: widgetOf(() =>
          import('./widgets/deliveries-widget').then(({ DeliveriesWidget }) => ({
            default: DeliveriesWidget,
          }))
        ),
      },
      {
        id: 'tills',
        pluginId: PLUGIN_ID,
        icon: Store,
        title: message('widget.tills.title'),
        link: { label: message('widget.tills.link'), href: `/plugins/${PLUGIN_ID}/tills` },
        permissions: permissionsFor('connections.read'),
        component: widgetOf(() =>
          import('./widgets/tills-widget').then(({ TillsWidget }) => ({ default: TillsWidget }))
        ),
      },
    ]);
    app.customFields.register([
      {
        name: 'address',
        pluginId: PLUGIN_ID,
        type: 'json',
        intlLabel: message('field.address'),
        intlDescription: message('field.address.about'),
        components: { Input: () => loadPage(import('./content-manager/address-input')) as never },
      },
      {
        name: 'values',
        pluginId: PLUGIN_ID,
        type: 'json',
        intlLabel: message('field.values'),
        intlDescription: message('field.values.about'),
        components: { Input: () => loadPage(import('./content-manager/values-input')) as never },
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
    const contentManager = app.getPlugin('content-manager');
    // Typed by the content manager, which a site may lack.
    const apis = contentManager?.apis as ContentManagerApis | undefined;
    apis?.addEditViewSidePanel?.([BinPanel, PurchasesPanel, RecordPanel]);
    apis?.addDocumentAction?.([BinAction]);
    apis?.addBulkAction?.([BulkMove, BulkRestore, ExportChosen, MergeChosen]);
    contentManager?.injectComponent('listView', 'actions', {
      name: `${PLUGIN_ID}-tools`,
      Component: ListTools,
    });
  },

  registerTrads({ locales }: { locales: string[] }) {
    return Promise.resolve(
      locales.map((locale) => ({ locale, data: prefixed(MENU_TEXTS[locale] ?? {}) }))
    );
  },
};
