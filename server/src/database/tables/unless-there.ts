/** Another node that boots at this moment does the same: what counts is that it is there now. */
export const unlessThere = async (
  isThere: () => Promise<boolean>,
  add: () => PromiseLike<unknown>
): Promise<void> => {
  if (await isThere()) return;
  try {
    await add();
  } catch (error) {
    if (!(await isThere())) throw error;
  }
};
