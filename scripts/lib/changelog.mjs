/** The text of a changeset, without its front matter. */
export const textOf = (changeset) => changeset.replace(/^---\n[\s\S]*?\n---\n/, '').trim();

/** The parts of all texts by heading, in the order in which the headings first appear; '' is none. */
const byHeading = (texts) => {
  const sections = new Map([['', []]]);
  for (const text of texts) {
    for (const part of text.split(/^(?=### )/m)) {
      const [heading = '', body = part] = /^(### .*)\n([\s\S]*)$/.exec(part)?.slice(1) ?? [];
      sections.set(heading, [...(sections.get(heading) ?? []), body.trim()]);
    }
  }
  return sections;
};

const endsWithPoint = (text) => text.split('\n\n').at(-1).startsWith('- ');

/** Points that follow points are one list, wherever they came from. */
const joined = (bodies) =>
  bodies
    .filter(Boolean)
    .reduce((all, body) =>
      endsWithPoint(all) && body.startsWith('- ') ? `${all}\n${body}` : `${all}\n\n${body}`
    );

/**
 * A changelog with a new version before the others: the texts of its changesets, those under one
 * heading together.
 * @param {string} changelog
 * @param {string} version
 * @param {string[]} texts
 * @returns {string}
 * @throws Error if the changelog has no version yet, or this one already
 */
export const withRelease = (changelog, version, texts) => {
  const first = changelog.search(/^## /m);
  if (first === -1) throw new Error('CHANGELOG.md has no version to stand before.');
  if (changelog.split('\n').includes(`## ${version}`)) {
    throw new Error(`CHANGELOG.md has ${version} already.`);
  }
  const parts = [...byHeading(texts)]
    .filter(([, bodies]) => bodies.some(Boolean))
    .map(([heading, bodies]) => [heading, joined(bodies)].filter(Boolean).join('\n\n'));
  const release = [`## ${version}`, ...parts].join('\n\n');
  return `${changelog.slice(0, first)}${release}\n\n${changelog.slice(first)}`;
};
