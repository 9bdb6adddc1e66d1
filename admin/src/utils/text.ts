import { useCallback } from 'react';
import { type PrimitiveType, useIntl } from 'react-intl';
import { PLUGIN_ID } from '../pluginId';
import { loadedText, type TextKey } from './loaded-texts';

export type { TextKey };

/** A message as the host's menus and widgets take it, which ask for one before any text is loaded. */
export const message = (key: TextKey) => ({
  id: `${PLUGIN_ID}.${key}`,
  get defaultMessage() {
    return loadedText(key) ?? key;
  },
});

export type Translate = (key: TextKey, values?: Record<string, PrimitiveType>) => string;

/** The plugin's texts in the user's language, below `withTexts`; a key that is not in English does not compile. */
export const useText = (): Translate => {
  const { formatMessage } = useIntl();
  return useCallback((key, values) => formatMessage(message(key), values), [formatMessage]);
};

/** A key made of a value that the server chose; `undefined` where there is no text for it. */
export const keyFor = (prefix: string, value: string): TextKey | undefined => {
  const key = `${prefix}.${value}`;
  return loadedText(key) === undefined ? undefined : (key as TextKey);
};
