/**
 * A path without the slashes at its end. Counted from the end: the pattern `\/+$` would begin anew
 * at each of many thousand slashes that something else follows.
 */
export const withoutTrailingSlashes = (path: string): string => {
  let length = path.length;
  while (path.charCodeAt(length - 1) === 0x2f) length -= 1;
  return path.slice(0, length);
};
