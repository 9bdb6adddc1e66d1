import { type ComponentType, useEffect, useMemo, useState } from 'react';
import { IntlProvider, useIntl } from 'react-intl';
import { PLUGIN_ID } from '../pluginId';
import { learnTexts } from '../utils/loaded-texts';

type Texts = Record<string, string>;

/** Texts about tills and stock have a file of their own, so that no file gets large. */
const textsIn = async (locale: string): Promise<Texts> => {
  const [screens, tills] = (await Promise.all([
    import(`../translations/${locale}.json`),
    import(`../translations/tills/${locale}.json`),
  ])) as { default: Texts }[];
  return { ...screens!.default, ...tills!.default };
};

const known = new Map<string, Texts>();

/** @returns English, for a language that there is no translation into */
const readTexts = async (locale: string): Promise<Texts> => {
  const texts = await textsIn(locale).catch(() => textsIn('en'));
  learnTexts(texts);
  const prefixed = Object.entries(texts).map(([key, text]) => [`${PLUGIN_ID}.${key}`, text]);
  known.set(locale, Object.fromEntries(prefixed) as Texts);
  return known.get(locale)!;
};

/**
 * Gives a part of the panel the plugin's texts in the reader's language, which are loaded when the first part is
 * shown: the host loads texts of all languages for everybody, before anybody has logged in. The host's own texts, and
 * the site's changes of ours that are among them, come first.
 */
export const withTexts = <Props extends object>(Part: ComponentType<Props>) => {
  const WithTexts = (props: Props) => {
    const { locale, messages } = useIntl();
    const [read, setRead] = useState({ locale, texts: known.get(locale) });
    useEffect(() => {
      let isCurrent = true;
      void (async () => {
        const texts = known.get(locale) ?? (await readTexts(locale));
        if (isCurrent) setRead({ locale, texts });
      })();
      return () => {
        isCurrent = false;
      };
    }, [locale]);
    const all = useMemo(() => ({ ...read.texts, ...messages }) as Texts, [read, messages]);
    if (!read.texts) return null;
    return (
      <IntlProvider locale={read.locale} defaultLocale="en" messages={all} textComponent="span">
        <Part {...props} />
      </IntlProvider>
    );
  };
  return WithTexts;
};
