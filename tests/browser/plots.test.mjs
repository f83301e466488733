// Plots: what they sum up, what is under the pointer, peaks, and the moments below them.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { until } from './support/flare.mjs';
import { World, onPage } from './support/world.mjs';

let world, ok;

before(async () => {
  world = await World.begin({ FLARE_HISTORY_FINE_STEP: '200ms' });
  await world.track();
  ok = await world.subscribe('/ok/{id}');
  // Calm for so many points of the history, and then a burst.
  let version = 0;
  await until('sixty calm points', async () => {
    await world.put(1, (version += 1));
    const { points } = await world.flare.api('GET', '/metrics/history?last=1m');
    return points.filter(({ accepted }) => accepted > 0).length >= 60;
  });
  await Promise.all(Array.from({ length: 400 }, (_, id) => world.put(`burst-${id}`, 1)));
  world.changes = version + 400;
  await world.flare.until(ok, (status) => status.feed.lagging === 0);
});

after(() => world?.end());

test('the numbers on top are of the time that is chosen, not of its last second', () =>
  onPage(world, {}, async (page, watch) => {
    await page.goto('/ui');
    const tile = (words) => page.locator('.tile', { hasText: words });
    const figure = async (words) => Number((await tile(words).locator('.figure').innerText()).replace(/\D/g, ''));
    await until('nothing happens any more, and the tile says what did', async () => (await figure('Changes')) === world.changes);
    assert.match(await tile('Changes').innerText(), /on average, up to/);
    assert.ok((await figure('Delivered')) >= 400);
    assert.match(await tile('Delivered').innerText(), /0 failed/);
    assert.match(await tile('at the client within').locator('.figure').innerText(), /\d.*(µs|ms|s)$/);
    await watch.check();
  }));

test('a peak is cut off and marked, so that the rest is seen, and can be shown whole', () =>
  onPage(world, {}, async (page, watch) => {
    await page.goto('/ui');
    const plot = page.locator('section.chart', { hasText: 'Changes per second' });
    const note = plot.locator('.cut-note');
    await note.getByText(/Cut off at .*; the highest is/).waitFor();
    await plot.locator('path.cuts').waitFor({ state: 'attached' });
    const heights = await plot.locator('path.line').first().getAttribute('d');
    const values = [...heights.matchAll(/[ML][\d.]+ ([\d.]+)/g)].map(([, y]) => 200 - Number(y));
    const middle = values.filter((value) => value > 0).sort((a, b) => a - b);
    assert.ok(middle[Math.floor(middle.length / 2)] > 20, 'the calm is not a line at the bottom');
    await watch.check();
    await watch.picture('dashboard-peak');
    await note.getByRole('link').click();
    await page.waitForURL(/scale=whole/);
    await page.locator('section.chart', { hasText: 'Changes per second' }).getByText('Up to the highest').waitFor();
    assert.equal(await page.locator('section.chart', { hasText: 'Changes per second' }).locator('path.cuts').count(), 0);
    await watch.check();
  }));

test('pointing at a plot shows its values, and so do a touch and the arrow keys', async () => {
  await onPage(world, { timezoneId: 'Asia/Kolkata' }, async (page, watch) => {
    await page.goto('/ui');
    const svg = page.locator('#changes-plot');
    await svg.scrollIntoViewIfNeeded();
    const { x, y, width, height } = await svg.boundingBox();
    const readout = page.locator('#readout');
    await page.mouse.move(x + width * 0.9, y + height / 2);
    await readout.waitFor();
    assert.match(await readout.innerText(), /\d\d:\d\d:\d\d GMT\+5:30 \(\d\d:\d\d:\d\d UTC\)\s+accepted \S+\/s\s+without news \S+\/s\s+refused \S+\/s/);
    // It stays while the page moves.
    const was = await svg.getAttribute('data-from');
    await until('the plot has moved', async () => (await svg.getAttribute('data-from')) !== was);
    assert.ok(await readout.isVisible());
    await watch.check();
    await page.screenshot({ path: new URL('../../target/browser/screenshots/readout.png', import.meta.url).pathname });
    await page.mouse.move(5, 5);
    await readout.waitFor({ state: 'hidden' });
    await svg.focus();
    await page.keyboard.press('ArrowLeft');
    await readout.waitFor();
    const there = await readout.innerText();
    await page.keyboard.press('PageUp');
    await until('it has gone on', async () => (await readout.innerText()) !== there);
    await page.keyboard.press('Escape');
    await readout.waitFor({ state: 'hidden' });
  });
  await onPage(world, { width: 'narrow', hasTouch: true }, async (page) => {
    await page.goto('/ui');
    const svg = page.locator('#changes-plot');
    await svg.scrollIntoViewIfNeeded();
    const { x, y, width, height } = await svg.boundingBox();
    await page.touchscreen.tap(x + width * 0.7, y + height / 2);
    await page.locator('#readout').waitFor();
    const box = await page.locator('#readout').boundingBox();
    assert.ok(box.x >= 0 && box.x + box.width <= 390, 'it is within the window');
  });
});

test('pointing at the bars of attempts shows when each was and how long it took, and so do a touch and the arrow keys', async () => {
  const said = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d GMT\+5:30 \(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\): delivered after \S+ \S+$/;
  await onPage(world, { timezoneId: 'Asia/Kolkata' }, async (page, watch) => {
    await page.goto(`/ui/subscriptions/${ok.id}/attempts`);
    const svg = page.locator('#latency-bars');
    const readout = page.locator('#readout');
    const { x, y, width, height } = await svg.boundingBox();
    await page.mouse.move(x + width * 0.5, y + 5);
    await readout.waitFor();
    assert.match(await readout.innerText(), said);
    // The browser's own word for it would stand over ours.
    assert.equal(await svg.locator('title').count(), 0);
    await watch.check();
    await page.mouse.move(5, 5);
    await readout.waitFor({ state: 'hidden' });
    await svg.focus();
    await page.keyboard.press('End');
    await readout.waitFor();
    const newest = (await page.locator('#crosshair').boundingBox()).x;
    await page.keyboard.press('Home');
    await until('it has gone to the oldest', async () => (await page.locator('#crosshair').boundingBox()).x < newest - width / 2);
    await page.goto(`/ui/resources/${world.resource.id}/subscriptions/new`);
    await page.locator('#waits-bars').scrollIntoViewIfNeeded();
    const waits = await page.locator('#waits-bars').boundingBox();
    await page.mouse.move(waits.x + 5, waits.y + waits.height - 5);
    await readout.getByText(/^attempt 2: /).waitFor();
  });
  await onPage(world, { width: 'narrow', hasTouch: true, timezoneId: 'Asia/Kolkata' }, async (page) => {
    await page.goto(`/ui/subscriptions/${ok.id}/attempts`);
    const svg = page.locator('#latency-bars');
    await svg.scrollIntoViewIfNeeded();
    const { x, y, width, height } = await svg.boundingBox();
    await page.touchscreen.tap(x + width * 0.9, y + height / 2);
    const readout = page.locator('#readout');
    await readout.waitFor();
    assert.match((await readout.innerText()).replaceAll('\n', ' '), said);
    const box = await readout.boundingBox();
    assert.ok(box.x >= 0 && box.x + box.width <= 390, 'it is within the window');
  });
});

test('the moments below a plot are round by the clock of the reader', async () => {
  for (const [timezoneId, range, round] of [
    ['UTC', '5m', /^\d\d:\d\d(:[0-5]0)?$/],
    ['Asia/Kolkata', '30m', /^\d\d:\d[05]$|^\d\d:\d\d(:[0-5]0)?$/],
  ]) {
    await onPage(world, { timezoneId }, async (page) => {
      await page.goto(`/ui?range=${range}`);
      const chart = page.locator('section.chart', { hasText: 'Changes per second' });
      const marks = await chart.locator('svg.times text').allTextContents();
      assert.ok(marks.length >= 2 && marks.length <= 7, marks.join(' '));
      for (const mark of marks) assert.match(mark, round);
      assert.equal(await chart.locator('.zone').innerText(), timezoneId === 'UTC' ? 'UTC' : 'GMT+5:30');
    });
  }
});
