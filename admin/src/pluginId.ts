export const PLUGIN_ID = 'switchboard';
