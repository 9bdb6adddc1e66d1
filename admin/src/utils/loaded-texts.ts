import type screens from '../translations/en.json';
import menu from '../translations/menu/en.json';
import type tills from '../translations/tills/en.json';

export type TextKey = keyof typeof screens | keyof typeof menu | keyof typeof tills;

/** Texts that stand in where the host has none: of its menus in English, of the rest what was loaded last. */
const loaded = new Map<string, string>(Object.entries(menu));

export const learnTexts = (texts: Record<string, string>): void => {
  for (const [key, text] of Object.entries(texts)) loaded.set(key, text);
};

export const loadedText = (key: string): string | undefined => loaded.get(key);
