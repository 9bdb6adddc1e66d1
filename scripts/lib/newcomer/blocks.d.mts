export function blocksOf(
  markdown: string
): { language: string; code: string; add: string | null; run: string | null }[];
