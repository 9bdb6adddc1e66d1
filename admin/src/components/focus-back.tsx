import { useEffect, useState } from 'react';

/**
 * In a dialog without a trigger of its own: gives the focus back to where it was when the dialog opened. From
 * an action of a menu, which is gone by then, it goes to the button that had opened the menu.
 */
export const FocusBack = () => {
  const [from] = useState(() => {
    const focused = document.activeElement;
    const menu = focused?.closest('[role=menu]')?.getAttribute('aria-labelledby');
    return (menu && document.getElementById(menu)) || focused;
  });
  useEffect(
    () => () => {
      // After the dialog has left the page: it holds the focus until then.
      setTimeout(() => {
        if (document.activeElement === document.body && from instanceof HTMLElement) from.focus();
      });
    },
    [from]
  );
  return null;
};
