// Chromium, and a page that watches itself: whatever it asks of another host, prints as an error, or throws is a
// complaint, and `page.check()` and `close` fail on complaints. Pictures are taken on the way.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { chromium } from 'playwright-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** All pictures; `cargo xtask browser --screenshots` takes those of the user guide from here. */
const PICTURES = 'target/browser/screenshots';

const WIDTHS = { wide: { width: 1440, height: 900 }, narrow: { width: 390, height: 844 } };

/** Of a picture of a phone's page, in pixels. */
const TALLEST = 2000;

const FLAGS = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // A container's root cannot have the sandbox; the pages are our own.
  ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
];

/** A browser with an empty profile. */
export async function launch() {
  const executablePath = process.env.FLARE_CHROMIUM ?? '/usr/bin/chromium';
  return chromium.launch({ executablePath, headless: true, args: FLAGS });
}

/** A page of a browser that may talk to `origin` only. */
export async function open(browser, origin, options = {}) {
  const context = await browser.newContext({
    baseURL: origin,
    viewport: WIDTHS[options.width ?? 'wide'],
    colorScheme: options.scheme ?? 'light',
    reducedMotion: 'reduce',
    ...(options.timezoneId ? { timezoneId: options.timezoneId } : {}),
    ...(options.hasTouch ? { hasTouch: true } : {}),
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const watch = new Watch(page, origin);
  return { page, watch, context };
}

/** What a page did that it should not. */
export class Watch {
  constructor(page, origin) {
    this.page = page;
    this.origin = origin;
    this.complaints = [];
    this.allowed = [];
    const { protocol, host } = new URL(origin);
    page.on('request', (request) => {
      const url = new URL(request.url());
      const own = url.protocol === protocol && url.host === host;
      if (!own && !['data:', 'blob:', 'about:'].includes(url.protocol)) this.complaints.push(`asked ${url} of another host`);
    });
    page.on('console', (message) => {
      if (message.type() !== 'error' && !(message.type() === 'warning' && /Content.Security/i.test(message.text()))) return;
      const text = `${message.text()} (${message.location().url})`;
      if (!this.allowed.some((pattern) => pattern.test(text))) this.complaints.push(`console: ${text}`);
    });
    page.on('pageerror', (error) => this.complaints.push(`error: ${error}`));
  }

  /** The browser prints an error for every answer from 400 on; a test that provokes one says so. */
  expect(pattern) {
    this.allowed.push(pattern);
  }

  /** Nothing to complain about so far. */
  clean() {
    assert.deepEqual(this.complaints, [], `complaints at ${this.page.url()}`);
  }

  /** The page as it stands: no complaint, nothing that hinders people, in light and in dark. */
  async check() {
    this.clean();
    for (const scheme of ['light', 'dark']) {
      await this.page.emulateMedia({ colorScheme: scheme });
      const violations = await hindrances(this.page);
      assert.deepEqual(violations, [], `axe at ${this.page.url()} (${scheme})`);
    }
    await this.page.emulateMedia({ colorScheme: 'light' });
    await this.#fits();
    this.clean();
  }

  /** Pictures of the page, wide and narrow, light and dark; also checks that nothing sticks out on a phone. */
  async picture(name) {
    const size = this.page.viewportSize();
    await this.page.evaluate(() => scrollTo(0, 0));
    // Nothing is pointed at.
    await this.page.mouse.move(1, 1);
    for (const [width, viewport] of Object.entries(WIDTHS)) {
      await this.page.setViewportSize(viewport);
      for (const scheme of ['light', 'dark']) {
        await this.page.emulateMedia({ colorScheme: scheme });
        await this.#fits();
        const path = join(ROOT, PICTURES, `${name}-${width}-${scheme}.png`);
        await mkdir(dirname(path), { recursive: true });
        const height = await this.page.evaluate(() => document.documentElement.scrollHeight);
        // A phone's page is shown beyond its window, but not without end, and not behind a question.
        const asked = await this.page.evaluate(() => document.querySelector('dialog[open]') !== null);
        const shown = width === 'narrow' && !asked ? Math.min(height, TALLEST) : viewport.height;
        const clip = { x: 0, y: 0, width: viewport.width, height: shown };
        await this.page.screenshot({ path, fullPage: true, clip, animations: 'disabled', caret: 'hide' });
      }
    }
    await this.page.emulateMedia({ colorScheme: 'light' });
    await this.page.setViewportSize(size);
  }

  /** Only tables and code may scroll sideways, the page may not. */
  async #fits() {
    const [wanted, there] = await this.page.evaluate(() => {
      const root = document.documentElement;
      return [root.scrollWidth, root.clientWidth];
    });
    assert.ok(wanted <= there, `${this.page.url()} is ${wanted} px wide in a window of ${there}`);
  }
}

/** What axe-core finds, as lines that say where. It is evaluated from outside, which the page's CSP does not forbid. */
export async function hindrances(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map((node) => `${id}: ${help}: ${node.target.join(' ')}: ${node.html.slice(0, 160)}`),
  );
}
