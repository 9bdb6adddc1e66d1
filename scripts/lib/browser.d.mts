import type { Browser, BrowserContextOptions, Page } from 'playwright-core';

interface Login {
  email: string;
  password: string;
}

export function launchBrowser(): Promise<Browser>;

/** Logs in through the login form of the page's site. */
export function logIn(page: Page, login: Login): Promise<void>;

/** A page of a session of its own, logged in to the site at `url` through the login form. */
export function signIn(
  browser: Browser,
  url: string,
  login: Login,
  options?: BrowserContextOptions
): Promise<Page>;
