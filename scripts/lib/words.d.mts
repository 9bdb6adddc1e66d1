export interface FoundWord {
  line: number;
  found: string;
  say: string;
}
export const findWords: (file: string, text: string) => FoundWord[];
