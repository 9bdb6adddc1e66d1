export interface FoundWord {
  line: number;
  found: string;
  say: string;
}
export const findWords: (
  file: string,
  text: string,
  options?: { withNames?: boolean }
) => FoundWord[];
export const findInMarkdown: (markdown: string) => FoundWord[];
export const findInDescriptions: (json: string) => FoundWord[];
export const findInMessages: (file: string, text: string) => FoundWord[];
export const findInTranslations: (text: string) => FoundWord[];
