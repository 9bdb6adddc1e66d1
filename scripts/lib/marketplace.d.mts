export const PACKED_BYTES: number;
export const CHUNK_BYTES: number;
export const packageFaults: (own: object, host: object) => string[];
export const linesOf: (list: string) => string[];
export const packedFaults: (
  files: { path: string; size: number }[],
  size: number,
  lines: string[]
) => string[];
export const logoFaults: (png: Buffer) => string[];
export const releaseFaults: (workflow: string) => string[];
