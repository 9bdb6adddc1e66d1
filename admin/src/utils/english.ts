import type screens from '../translations/en.json';
import type tills from '../translations/tills/en.json';

export type TextKey = keyof typeof screens | keyof typeof tills;

/**
 * The English texts, which stand in where a language has none. They are loaded together with the
 * reader's language, not with every page of the admin panel.
 */
const english = new Map<string, string>();

export const learnEnglish = (texts: Record<string, string>): void => {
  for (const [key, text] of Object.entries(texts)) english.set(key, text);
};

export const englishText = (key: string): string | undefined => english.get(key);
