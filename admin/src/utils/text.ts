import { useCallback } from 'react';
import { type PrimitiveType, useIntl } from 'react-intl';
import { PLUGIN_ID } from '../pluginId';
import en from '../translations/en.json';

export type TextKey = keyof typeof en;

/** A message as the host's menus and widgets take it. */
export const message = (key: TextKey) => ({
  id: `${PLUGIN_ID}.${key}`,
  defaultMessage: en[key],
});

export type Translate = (key: TextKey, values?: Record<string, PrimitiveType>) => string;

/** The plugin's texts in the language of whoever is logged in; a key that is not in English does not compile. */
export const useText = (): Translate => {
  const { formatMessage } = useIntl();
  return useCallback((key, values) => formatMessage(message(key), values), [formatMessage]);
};

/** A key made of a value that the server chose; `undefined` where there is no text for it. */
export const keyFor = (prefix: string, value: string): TextKey | undefined => {
  const key = `${prefix}.${value}`;
  return Object.hasOwn(en, key) ? (key as TextKey) : undefined;
};
