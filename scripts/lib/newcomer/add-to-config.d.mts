export function addTo(source: string, entry: string, key?: string): string;
