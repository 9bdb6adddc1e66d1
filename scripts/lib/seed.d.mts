export function preparePlayground(where: {
  siteUrl: string;
  receiverUrl: string;
  dataFolder: string;
  withShop: boolean;
  onSecret(secret: string): void;
}): Promise<{ login?: { email: string; password: string }; apiToken?: string }>;
