export const newestWhole: (
  versions: string[],
  packagesOf: (version: string) => Record<string, string>,
  isThere: (name: string, version: string) => boolean
) => string | undefined;
