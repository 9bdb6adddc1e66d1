import { chromium } from 'playwright-core';
import { findChromium } from './prepare.mjs';

/** Nothing leaves this computer: not the browser's own services, not the panel's pictures. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // A page lives for seconds: code is made faster for longer than it runs.
  '--js-flags=--no-maglev --no-turbofan',
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
];

export const launchBrowser = async () => {
  const executablePath = findChromium();
  if (!executablePath) throw new Error('No Chromium: install it, or set CHROMIUM_PATH.');
  return chromium.launch({ executablePath, args: FLAGS });
};

/** Logs in through the login form of the page's site. */
export const logIn = async (page, { email, password }) => {
  await page.goto('/admin/auth/login');
  await page.fill('input[name=email]', email);
  await page.fill('input[name=password]', password);
  await page.click('button[type=submit]');
  await page.waitForURL(({ pathname }) => !pathname.includes('/auth/'));
};

/** A page of a session of its own, logged in to the site at `url` through the login form. */
export const signIn = async (browser, url, login, options = {}) => {
  const context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    baseURL: url,
    ...options,
  });
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  await logIn(page, login);
  return page;
};
