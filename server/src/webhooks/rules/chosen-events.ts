/**
 * The events that a webhook's row says it chose. Somebody else may have written there what is no list
 * of names: that chooses nothing, and must cost no boot and no write.
 */
export const chosenEvents = (text: string | null): string[] => {
  try {
    const chosen: unknown = JSON.parse(text ?? '[]');
    return Array.isArray(chosen) ? chosen.filter((event) => typeof event === 'string') : [];
  } catch {
    return [];
  }
};
