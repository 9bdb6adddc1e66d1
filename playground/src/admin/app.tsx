import type { StrapiApp } from '@strapi/strapi/admin';
import { Tour } from './tour';
import de from './translations/de.json';
import en from './translations/en.json';
import fr from './translations/fr.json';

export default {
  config: {
    /** Languages of the panel beside English; whoever is logged in chooses one in their profile. */
    locales: ['de', 'fr'],
    translations: { en, de, fr },
    /** The host's own introduction and news: here there is a tour of the plugin. */
    tutorials: false,
    notifications: { releases: false },
  },
  /** A site may show something of its own on the plugin's overview page; here that is the tour. */
  bootstrap(app: StrapiApp): void {
    app
      .getPlugin('switchboard')
      .injectComponent('overview', 'top', { name: 'playground-tour', Component: Tour });
  },
};
