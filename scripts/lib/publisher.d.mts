export const PLACEHOLDER: string;
export const REPOSITORY: string;
export const AUTHOR: string;
export interface Publisher {
  repository: string;
  author: string;
}
export const repositoryOf: (given?: string) => string;
export const authorOf: (given?: string) => string;
export const filledIn: (text: string, publisher: Publisher) => string;
export const withPlaceholder: (texts: Map<string, string>) => string[];
