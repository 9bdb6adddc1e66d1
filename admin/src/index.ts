import { PLUGIN_ID } from './pluginId';

interface StrapiApp {
  registerPlugin(plugin: { id: string; name: string }): void;
}

export default {
  register(app: StrapiApp): void {
    app.registerPlugin({ id: PLUGIN_ID, name: 'Switchboard' });
  },
};
