import { STEPS } from '../../../playground/src/admin/steps';
import de from '../../../playground/src/admin/translations/de.json';
import en from '../../../playground/src/admin/translations/en.json';
import fr from '../../../playground/src/admin/translations/fr.json';
import { readTexts } from '../../support/translations';

/** The tour of the playground, whose words are found by the names of its steps and links. */
it('has a text for each step and link, and no other', () => {
  const named = STEPS.flatMap(({ id, links }) => [
    `${id}.do`,
    `${id}.see`,
    ...links.map(({ text }) => `link.${text}`),
  ]);
  const all = [...new Set([...named, 'title', 'intro', 'hide', 'show'])];
  expect(all.map((name) => `playground.tour.${name}`).sort()).toEqual(Object.keys(en).sort());
});

it('leads from each step to where it happens', () => {
  for (const { links } of STEPS) expect(links.length).toBeGreaterThan(0);
  const pages = STEPS.flatMap(({ links }) =>
    links.flatMap((one) => ('page' in one ? one.page : []))
  );
  expect(new Set(pages)).toEqual(new Set(['receiver', 'till']));
});

it.each([
  ['German', de],
  ['French', fr],
])('has every text in %s, and no other', (_language, texts) => {
  expect(Object.keys(texts).sort()).toEqual(Object.keys(en).sort());
});

it.each([
  ['English', en, 'en'],
  ['German', de, 'de'],
  ['French', fr, 'fr'],
])('calls buttons in %s what they are called', (_language, texts, language) => {
  const called = (key: string): string =>
    String(readTexts(language)[key]).replace('{n, number}', '…');
  expect(texts['playground.tour.recover.do']).toContain(called('recovery.all'));
  expect(texts['playground.tour.outage.see']).toContain(called('delivery.again'));
  expect(texts['playground.tour.mapping.do']).toContain(called('mapping.resolve'));
});

it('has no punctuation in French that could begin a line', () => {
  const apart = / [:;!?»](?=\s|$|[.,)])|« /;
  expect(Object.values(fr).filter((text) => apart.test(text))).toEqual([]);
});
