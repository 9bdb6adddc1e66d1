/** Placeholder for the publisher until one fills it in; the top-level domain is one that never exists. */
export const PLACEHOLDER = 'publisher.invalid';
export const REPOSITORY = `https://${PLACEHOLDER}/switchboard`;
export const AUTHOR = `Publisher <mail@${PLACEHOLDER}>`;

/** A public address of a repository, without a trailing slash or `.git`. */
export const repositoryOf = (given) => {
  const address = (given ?? '').replace(/\/+$/, '').replace(/\.git$/, '');
  if (!/^https:\/\/[^\s/]+\/\S+\/\S+$/.test(address)) {
    throw new Error('Give the address of the repository, as https://github.com/acme/switchboard.');
  }
  return address;
};

/** `Name <mail>`, as npm takes it; the address may be missing. */
export const authorOf = (given) => {
  const author = (given ?? '').trim();
  if (!/^[^<>"\\]+( <[^<>\s"\\]+@[^<>\s"\\]+>)?$/.test(author)) {
    throw new Error('Give the author as "Ada Lovelace <ada@example.com>", or only a name.');
  }
  return author;
};

/** A text with the publisher's own facts in place of each placeholder. */
export const filledIn = (text, { repository, author }) =>
  text.replaceAll(AUTHOR, author).replaceAll(REPOSITORY, repository);

/** The files that still have one. @param {Map<string, string>} texts by path */
export const withPlaceholder = (texts) =>
  [...texts].filter(([, text]) => text.includes(PLACEHOLDER)).map(([file]) => file);
