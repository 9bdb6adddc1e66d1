/** What spans and meters are listed under. */
export const INSTRUMENTATION = 'strapi-plugin-switchboard';
