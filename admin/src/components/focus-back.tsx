import { useEffect, useRef, useState } from 'react';

/** Focuses that unless something else on the page has the focus; later, as a dialog holds it until it is gone. */
const focusLater = (next: () => Element | null): void => {
  setTimeout(() => {
    const element = document.activeElement === document.body ? next() : null;
    if (element instanceof HTMLElement) element.focus();
  });
};

/** @returns a function for what may remove its own button: the page then has the focus, where the host's link leads */
export const useFocusAfter = (): (() => void) => {
  const isCalled = useRef(false);
  useEffect(
    () => () => {
      if (isCalled.current) focusLater(() => document.getElementById('main-content'));
    },
    []
  );
  return () => {
    isCalled.current = true;
  };
};

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
  useEffect(() => () => focusLater(() => from), [from]);
  return null;
};
