const LINK = /(!?)\[((?:[^\][]|\[[^\]]*\])*)\]\(((?!#|[a-z]+:)[^)\s]+)\)/g;

/**
 * A page of the repository's root whose links lead to the repository's files from anywhere: npm shows the
 * README by itself. Pictures are those of the `raw` address.
 * @param {string} repository its address, without a trailing slash
 */
export const withAbsoluteLinks = (text, repository) =>
  text.replace(LINK, (_whole, picture, label, target) => {
    const kind = picture ? 'raw' : 'blob';
    return `${picture}[${label}](${repository}/${kind}/main/${target})`;
  });
