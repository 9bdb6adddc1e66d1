export function textOf(changeset: string): string;
export function withRelease(changelog: string, version: string, texts: string[]): string;
