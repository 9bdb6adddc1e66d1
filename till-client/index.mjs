// One TillError for both kinds of module.
import till from './index.js';

export const { createOfflineTill, createTill, sign, TillError } = till;
