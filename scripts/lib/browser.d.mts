import type { Browser, BrowserContextOptions, Page } from 'playwright-core';

export function launchBrowser(): Promise<Browser>;

/** A page of a session of its own, logged in to the site at `url` through the login form. */
export function signIn(
  browser: Browser,
  url: string,
  login: { email: string; password: string },
  options?: BrowserContextOptions
): Promise<Page>;
