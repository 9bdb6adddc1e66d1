'use strict';

/**
 * The value of an option that is a whole number.
 * @param {string | undefined} text as it was typed; undefined if the option was not given
 * @throws {Error} one line that names the option and what it may be
 */
const wholeNumber = (name, text, minimum, maximum) => {
  if (text === undefined) return undefined;
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= minimum && value <= maximum) return value;
  throw new Error(`${name} must be a whole number from ${minimum} to ${maximum}, not "${text}"`);
};

module.exports = { wholeNumber };
