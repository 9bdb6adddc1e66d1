/** True for a whole number; negative ones too. */
export const isWhole = (text: string): boolean => /^[+-]?\d{1,10}$/.test(text.trim());
