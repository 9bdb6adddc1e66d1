/** Languages of the panel beside English; whoever is logged in chooses one in their profile. */
export default { config: { locales: ['de', 'fr'] } };
