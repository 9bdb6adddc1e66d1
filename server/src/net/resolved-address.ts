export interface ResolvedAddress {
  address: string;
  family: number;
}

/** Every address of a name, or a rejection. */
export type ResolveHost = (host: string) => Promise<ResolvedAddress[]>;
